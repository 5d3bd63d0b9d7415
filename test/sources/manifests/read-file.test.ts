import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { unpackRecord } from '../../../src/records/pack.ts'
import { readManifestFile } from '../../../src/sources/manifests/read-file.ts'
import { listManifests } from '../../../src/yaml/directory.ts'
import { recordManifest } from '../../support/manifest.ts'

/** A file that was not read before. */
const NEW = {
  previous: undefined,
  findPrevious: () => undefined,
  onIgnored: undefined,
  isThorough: false,
}

t.test('two files read by turns are not mixed up', async (t) => {
  const texts = ['a', 'b'].map((file, i) =>
    Array.from({ length: 6 }, (_, n) =>
      recordManifest(`${file}${n}`, `192.0.2.${i * 100 + n}`),
    ).join(''),
  )
  const directory = t.testdir({ 'a.yaml': texts[0]!, 'b.yaml': texts[1]! })
  const pause = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
  const read = async (file: string): Promise<string[]> => {
    const path = join(directory, file)
    const { documents } = await readManifestFile(path, { ...NEW, pause })
    return documents.flatMap(({ records }) =>
      records.map(({ key, packed }) => `${key} ${unpackRecord(packed!).endpoints[0]!.rdata[0]!}`),
    )
  }
  const first = await read('a.yaml')
  const [a, b] = await Promise.all([read('a.yaml'), read('b.yaml')])
  for (const [got, file, base] of [
    [a, 'a', 0],
    [b, 'b', 100],
  ] as const) {
    t.strictSame(
      got,
      Array.from({ length: 6 }, (_, n) => `default/${file}${n} 192,0,2,${base + n}`),
    )
  }
  t.strictSame(a, first)
})

t.test('a file has a bound on its documents', async (t) => {
  const directory = t.testdir({ 'many.yaml': '---\n'.repeat(1_000_002) })
  const path = join(directory, 'many.yaml')
  const { errors } = await readManifestFile(path, { ...NEW, pause: () => undefined })
  t.equal(errors.length, 1)
  t.match(errors[0]!.print(), /many\.yaml:\d+: a file has up to 1000000 documents: split it$/)
})

t.test('JSON that nests too deep is refused, not parsed', async (t) => {
  const brackets = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
  const list = (item: string): string => `{"kind": "List", "items": [\n${item}\n]}`
  const table: readonly { name: string; given: string; want: readonly string[] }[] = [
    { name: 'arrays', given: brackets(700_000), want: ['1: nested too deep'] },
    { name: 'objects', given: '{"a":'.repeat(600), want: ['1: nested too deep'] },
    { name: 'an item', given: list(brackets(600)), want: ['2: nested too deep'] },
    {
      name: 'the rest',
      given: `${list('{}').slice(0, -1)},"a":${brackets(600)}}`,
      want: ['3: nested too deep'],
    },
    { name: 'brackets in strings', given: `{"a": "${'['.repeat(600)}"}`, want: [] },
    { name: 'as deep as may be', given: `{"a":${brackets(511)}}`, want: [] },
  ]
  for (const { name, given, want } of table) {
    const directory = t.testdir({ 'x.json': given })
    const path = join(directory, 'x.json')
    const { errors } = await readManifestFile(path, { ...NEW, pause: () => undefined })
    t.strictSame(
      errors.map((e) => `${e.position?.line}: ${e.message}`),
      want,
      name,
    )
  }
})

t.test('a file with a name that is not UTF-8 is reported', async (t) => {
  const directory = t.testdir({ 'a.yaml': recordManifest('a', '192.0.2.1') })
  writeFileSync(
    Buffer.concat([Buffer.from(`${directory}/b`), Buffer.of(0xe9), Buffer.from('.yaml')]),
    '',
  )
  const { files, warnings } = await listManifests(directory, async () => {})
  t.equal(files.length, 1)
  t.match(warnings, [/b\ufffd\.yaml: not read, its name is not valid UTF-8: rename the file$/])
})
