import t from 'tap'
import { shortHash } from '../../../src/operator/record/short-hash.ts'
import { ownerIdOf } from '../../../src/operator/status/status.ts'
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
    const record = dnsRecord({ spec: given === '' ? {} : { ownerID: given } })
    t.equal(ownerIdOf(record), want ?? shortHash(given), name)
  }
  t.end()
})
