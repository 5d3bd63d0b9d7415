import t from 'tap'
import { joinStatuses, labelsOf, type PeerStatus } from '../../src/peering/peer-status.ts'

const STATUS: PeerStatus = {
  address: '192.0.2.53:53',
  keyName: '',
  site: 'east',
  generation: 'v2',
  lastSeenMs: 100,
  lastSeenTimeMs: 1100,
  serial: 7,
  isUp: true,
  error: '',
  failures: 1,
  endpoints: 3,
  refused: 2,
}
const keyed = { ...STATUS, keyName: 'key.example.' }
const silent = {
  ...keyed,
  lastSeenMs: 50,
  lastSeenTimeMs: 1050,
  serial: 6,
  isUp: false,
  error: 'BADSIG',
}

t.test('peers are distinguished by address, and by key if they have one', async (t) => {
  const site = 'eu'
  const peer = '192.0.2.53:53'
  t.strictSame(labelsOf({ ...STATUS, site: '' }), { peer })
  t.strictSame(labelsOf({ ...STATUS, site }), { peer, site })
  t.strictSame(labelsOf({ ...keyed, site }), { peer, key: 'key.example.', site })
  const many = Array.from({ length: 1000 }, (_, i) => `s${i}`).join()
  t.strictSame(labelsOf({ ...STATUS, site: many }), { peer, site: 's0,s1,s2,s3,s4,…' })
})

t.test('statuses that look alike are one, and what is amiss with any is there', async (t) => {
  const worse = { ...silent, failures: 2, refused: 4 }
  const table = [
    { name: 'none', given: [], want: [] },
    { name: 'several addresses', given: [STATUS, { ...STATUS, address: 'b:53' }], want: undefined },
    { name: 'with a key, and without', given: [STATUS, keyed], want: undefined },
    { name: 'keys of two names', given: [keyed, { ...keyed, keyName: 'b.' }], want: undefined },
    { name: 'keys of one name', given: [keyed, silent], want: [worse] },
    { name: 'in another order', given: [silent, keyed], want: [worse] },
    {
      name: 'one that was never heard',
      given: [keyed, { ...silent, lastSeenMs: Number.NEGATIVE_INFINITY, lastSeenTimeMs: 0 }],
      want: [{ ...worse, lastSeenMs: Number.NEGATIVE_INFINITY, lastSeenTimeMs: 0 }],
    },
  ]
  for (const { name, given, want } of table) t.strictSame(joinStatuses(given), want ?? given, name)
})
