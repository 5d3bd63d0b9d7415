import t from 'tap'
import { DnsRecordView } from '../../../src/operator/record/record-view.ts'
import { shortHash } from '../../../src/operator/record/short-hash.ts'
import { dnsRecord } from '../../support/operator-objects.ts'

t.test('an owner id is what the record says, where a note can hold it', (t) => {
  const table = [
    { name: 'none', given: '', want: shortHash('uid-of-app') },
    { name: 'a plain one', given: 'team-1.west', want: 'team-1.west' },
    { name: 'one that would name another', given: 'a,external-dns/owner=b' },
    { name: 'two', given: 'owner-1&&owner-2' },
    { name: 'a quote', given: 'owner"1' },
    { name: 'a space', given: 'owner 1' },
    { name: 'a letter beyond ASCII', given: 'größer' },
  ]
  for (const { name, given, want } of table) {
    const record = new DnsRecordView(dnsRecord({ spec: given === '' ? {} : { ownerID: given } }))
    t.equal(record.ownerId, want ?? shortHash(given), name)
  }
  t.end()
})

t.test('the role of a record follows its labels before its spec', async (t) => {
  const [derived, authoritative] = [
    { 'kuadrant.io/type': 'merged' },
    { 'kuadrant.io/authoritative-record': 'true' },
  ]
  const table = [
    { name: 'no labels', labels: {}, delegate: false, want: 'ordinary' },
    { name: 'delegates', labels: {}, delegate: true, want: 'delegating' },
    { name: 'authoritative', labels: authoritative, delegate: true, want: 'authoritative' },
    { name: 'derived', labels: { ...authoritative, ...derived }, delegate: true, want: 'derived' },
    { name: 'labels of another type', labels: 'none', delegate: true, want: 'delegating' },
  ]
  for (const { name, labels, delegate, want } of table) {
    const { role } = new DnsRecordView(dnsRecord({ metadata: { labels }, spec: { delegate } }))
    t.equal(role, want, name)
  }
})

t.test('missing fields, and fields of another type, have defaults', async (t) => {
  for (const object of [{}, { metadata: 7, spec: [], status: 'x' }]) {
    const view = new DnsRecordView(object)
    t.match(view, { name: '', uid: '', generation: 0, rootHost: '', providerName: '', spec: {} })
    t.match(view, { role: 'ordinary', isDeleting: false, isHeld: false, isManaged: false })
    const { finalizers, ownerReferences, endpoints, conditions, writeCounter } = view
    const lists = { finalizers, ownerReferences, endpoints, conditions }
    t.strictSame(lists, { finalizers: [], ownerReferences: [], endpoints: [], conditions: [] })
    t.equal(writeCounter, 0)
    t.equal(view.resource.kind, 'refused')
  }
})
