import t from 'tap'
import type { ApiObject } from '../../../src/kube/api.ts'
import {
  composeNote,
  joinOwners,
  type RegistryNote,
  scanNotes,
} from '../../../src/operator/delegation/registry.ts'
import { readSpecEndpoints } from '../../../src/operator/record/spec-endpoint.ts'

const read = (object: ApiObject) => readSpecEndpoints([object])[0]!
const CLAIM: RegistryNote = {
  owner: 'owner1',
  group: '',
  cluster: '',
  targets: undefined,
  ttlSeconds: undefined,
  note: undefined,
}
const A = { dnsName: 'example.com', recordType: 'A', targets: ['192.0.2.1'] }
const NO_WILDCARDS: ReadonlySet<string> = new Set()

t.test('a claim is noted as upstream notes it', async (t) => {
  t.strictSame(composeNote(read(A), CLAIM), {
    dnsName: 'kuadrant-2tqs20a7-a-example.com',
    recordType: 'TXT',
    targets: ['"heritage=external-dns,external-dns/owner=owner1,external-dns/version=1"'],
  })
  const cname = {
    dnsName: 'echo.k.example.com',
    recordType: 'CNAME',
    targets: ['klb.echo.k.example.com'],
  }
  const grouped = { ...CLAIM, owner: '12urzgc7', group: 'demo-02', targets: cname.targets }
  t.strictSame(composeNote(read(cname), grouped), {
    dnsName: 'kuadrant-228crxc1-cname-echo.k.example.com',
    recordType: 'TXT',
    targets: [
      '"heritage=external-dns,external-dns/group=demo-02,external-dns/owner=12urzgc7,external-dns/targets=klb.echo.k.example.com,external-dns/version=1"',
    ],
  })
})

t.test('a note has the set identifier and the properties of its endpoint', async (t) => {
  const providerSpecific = [{ name: 'weight', value: '7' }]
  const object = { ...A, dnsName: '*.example.com', setIdentifier: 'x', providerSpecific }
  const note = composeNote(read(object), {
    ...CLAIM,
    targets: ['192.0.2.1', '192.0.2.2'],
    ttlSeconds: 60,
  })
  t.match(note, {
    dnsName: 'kuadrant-2tqs20a7-a-wildcard.example.com',
    setIdentifier: 'x',
    providerSpecific,
  })
  const wildcards = new Set(['wildcard.example.com'])
  t.match(scanNotes(read(note), wildcards), [
    {
      key: '["*.example.com","A","x"]',
      owner: 'owner1',
      targets: ['192.0.2.1', '192.0.2.2'],
      ttlSeconds: 60,
    },
  ])
  t.match(scanNotes(read(note), NO_WILDCARDS), [{ key: '["wildcard.example.com","A","x"]' }])
})

t.test('targets that would be read as something else are not noted', async (t) => {
  for (const target of ['1 . alpn="h2,h3"', 'a,b', 'a&&b', 'a\\b']) {
    const note = composeNote(read(A), { ...CLAIM, targets: [target] })
    t.match(scanNotes(read(note), NO_WILDCARDS), [{ owner: 'owner1', targets: undefined }], target)
  }
})

t.test('notes of older operators are read: several owners, several targets, no hash', async (t) => {
  const note = {
    dnsName: 'kuadrant-cname-a.example.com',
    recordType: 'TXT',
    targets: [
      'heritage=external-dns,external-dns/owner=o1&&o2',
      '"heritage=external-dns,external-dns/targets=x"',
    ],
  }
  const found = scanNotes(read(note), NO_WILDCARDS)
  t.match(found, [
    { key: '["a.example.com","CNAME",""]', owner: 'o1', targets: undefined },
    { owner: 'o2', targets: undefined },
  ])
  t.equal(found.length, 2)
})

t.test('other texts are not ownership records', async (t) => {
  const note = composeNote(read(A), CLAIM)
  const table: readonly ApiObject[] = [
    { ...note, recordType: 'A' },
    { ...note, targets: ['v=spf1 -all'] },
    { ...note, targets: [] },
    { ...note, targets: [...(note.targets as string[]), 'v=spf1 -all'] },
    { ...note, dnsName: 'www.example.com' },
    // Of another owner: the hash is not that of the owner.
    { ...note, dnsName: 'kuadrant-00000000-a-example.com' },
    { ...note, targets: ['heritage=external-dns'] },
  ]
  for (const object of table)
    t.strictSame(scanNotes(read(object), NO_WILDCARDS), [], JSON.stringify(object))
})

t.test('owners are joined in order, each once', async (t) => {
  t.equal(joinOwners(['b', 'a', 'b']), 'a&&b')
})
