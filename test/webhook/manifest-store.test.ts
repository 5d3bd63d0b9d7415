import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { validateResource } from '../../src/records/validate/resource.ts'
import { FileRecordStore } from '../../src/webhook/manifest-store.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { endpoint, openProvider, registryOf } from './external-dns.ts'

const A = endpoint({ dnsName: 'shop.example.org', recordType: 'A', targets: ['192.0.2.1'] })
const B = endpoint({ dnsName: 'wiki.example.org', recordType: 'A', targets: ['192.0.2.2'] })
const UNAVAILABLE = { message: /ENOENT|ENOTDIR/ }

t.test('each record is a file', async (t) => {
  const directory = temporaryDirectory(t)
  const provider = openProvider(new FileRecordStore(directory, 'default'))
  const put = [A, registryOf(A), B, registryOf(B)]
  t.match(await provider.apply({ remove: [], put }), { written: 2, failures: [] })
  const files = readdirSync(directory).sort()
  t.match(files, [/^shop-example-org-webhook-\w{10}\.json$/, /^wiki-example-org-webhook-/])
  for (const file of files) {
    const resource = validateResource(JSON.parse(readFileSync(join(directory, file), 'utf8')))
    t.match(resource, { kind: 'record', record: { namespace: 'dns', endpoints: { length: 1 } } })
  }
  t.same(new Set(await provider.records()), new Set(put))
  t.match(await provider.apply({ remove: [], put }), { written: 0 })
  t.match(await provider.apply({ remove: [B, registryOf(B)], put: [] }), { removed: 1 })
  t.same(readdirSync(directory), files.slice(0, 1))
})

t.test('files of others are not read, and not replaced', async (t) => {
  const directory = temporaryDirectory(t)
  const others = openProvider(new FileRecordStore(directory, 'other'), 'other')
  await others.apply({ remove: [], put: [A] })
  const provider = openProvider(new FileRecordStore(directory, 'default'))
  writeFileSync(join(directory, 'mine.json'), '{')
  writeFileSync(join(directory, 'a.yaml'), 'kind: DNSRecord\n')
  t.same(await provider.records(), [])
  await provider.apply({ remove: [A], put: [] })
  t.equal(readdirSync(directory).length, 3)
  t.match(await provider.apply({ remove: [], put: [A] }), { written: 1 })
  const file = readdirSync(directory).find((name) => !['mine.json', 'a.yaml'].includes(name))!
  writeFileSync(join(directory, file), '{')
  await t.rejects(provider.records(), { message: /is not JSON/ }, 'a damaged file is reported')
})

t.test('a directory that is gone', async (t) => {
  const directory = temporaryDirectory(t)
  const provider = openProvider(new FileRecordStore(directory, 'default'))
  rmSync(directory, { recursive: true })
  await t.rejects(provider.records(), UNAVAILABLE)
  await t.rejects(provider.apply({ remove: [], put: [A] }), UNAVAILABLE)
})

t.test('writers at the same time all succeed', async (t) => {
  const directory = temporaryDirectory(t)
  const put = Array.from({ length: 4 }, (_, index) => ({ ...A, setIdentifier: `set-${index}` }))
  const open = () => openProvider(new FileRecordStore(directory, 'default'))
  const outcomes = await Promise.all(put.map((one) => open().apply({ remove: [], put: [one] })))
  t.same(
    outcomes.flatMap(({ failures }) => failures),
    [],
  )
  t.same(await open().records(), put)
})
