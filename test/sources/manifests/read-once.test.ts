import { join } from 'node:path'
import t from 'tap'
import { readDirectoryOnce, readDump } from '../../../src/sources/manifests/read-once.ts'

const record = (name: string, target: string): string => `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: { name: ${name}, namespace: docs }
spec:
  rootHost: ${name}.k.example.com
  endpoints:
    - { dnsName: ${name}.k.example.com, recordType: A, targets: [${target}] }
`
const file = (...documents: string[]): string => documents.map((text) => `---\n${text}`).join('')
const one = record('one', '192.0.2.1')
const two = record('two', '192.0.2.2')
const three = record('three', '192.0.2.3')
const broken = record('broken', 'nonsense')

t.test('documents of a similar directory are copied with their own places', async (t) => {
  const directory = t.testdir({
    old: { 'a.yaml': file(one, two, broken), 'b.yaml': file(three) },
    new: { 'a.yaml': file(two, record('more', '192.0.2.9'), one, broken) },
  })
  const old = await readDirectoryOnce(join(directory, 'old'))
  const next = await readDirectoryOnce(join(directory, 'new'), old)
  const alone = await readDirectoryOnce(join(directory, 'new'))
  t.same([...next.store.records()], [...alone.store.records()])
  t.same(next.store.places(), alone.store.places())
  t.same(next.store.faults.all(), alone.store.faults.all())
  t.match(next.store.faults.all(), [{ position: { file: join(directory, 'new/a.yaml') } }])
  const before = { file: join(directory, 'old/a.yaml'), line: 9, index: 1 }
  t.same(old.store.placeOf('docs/two'), before, 'the other reading is left alone')
})

t.test('items of a similar dump are copied', async (t) => {
  const item = (text: string): string => `- ${text.trimEnd().replaceAll('\n', '\n  ')}\n`
  const dump = (...documents: string[]): Buffer =>
    Buffer.from(`apiVersion: v1\nitems:\n${documents.map(item).join('')}kind: List\n`)
  const old = await readDump('old', dump(one, two, three))
  const next = await readDump('new', dump(three, one), old)
  const alone = await readDump('new', dump(three, one))
  t.same([...next.store.records()], [...alone.store.records()])
  t.same(next.store.places(), alone.store.places())
})

t.test('documents that are too long for work in slices', async (t) => {
  const record = { apiVersion: 'kuadrant.io/v1alpha1', kind: 'DNSRecord', metadata: { name: 'a' } }
  const long = { ...record, spec: { rootHost: 'x'.repeat(1000) } }
  const list = (item: object): object => ({ apiVersion: 'v1', kind: 'List', items: [record, item] })
  const block = (size: number): string =>
    `kind: Other\n---\nkind: Other\nname: ${'x'.repeat(size)}\n`
  for (const [text, line] of [
    [JSON.stringify(long), 1],
    [JSON.stringify(list(long)), 1],
    [block(1000), 2],
    [JSON.stringify(list(record)), 0],
    [block(300), 0],
  ] as const) {
    const { store } = await readDump('dump', Buffer.from(text), undefined, {
      documentOctetsMax: 500,
    })
    const faults = [...store.faults.all()].filter(({ message }) => /500 octets/.test(message))
    t.strictSame(
      faults.map(({ position }) => position?.line),
      line === 0 ? [] : [line],
    )
  }
})
