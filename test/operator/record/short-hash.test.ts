import t from 'tap'
import { shortHash } from '../../../src/operator/record/short-hash.ts'

t.test('hashes are those that Kuadrant makes', (t) => {
  const table = [
    { given: 'example.com', want: '1jbcyj4z' },
    { given: 'simple.k.example.com', want: '1c8db9d0' },
    { given: '2vl2ac4b', want: '2kl5wt14' },
    { given: 'pb.com', want: 'jsys0tw1' },
  ]
  for (const { given, want } of table) t.equal(shortHash(given), want, given)
  t.end()
})
