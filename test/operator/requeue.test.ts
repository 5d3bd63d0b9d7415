import t from 'tap'
import { nextLookMs } from '../../src/operator/requeue.ts'

const BOUNDS = { minMs: 5000, maxMs: 900_000 }
const ALL_FOLLOWED = { isPolling: false, quietLooks: 0, ttlSeconds: 60, expiresInMs: undefined }
const POLLING = { ...ALL_FOLLOWED, isPolling: true }

t.test('a record is looked at again when there may be news', (t) => {
  const table = [
    { name: 'peers that tell by themselves need no asking', given: ALL_FOLLOWED, want: 900_000 },
    { name: 'after a change others are asked soon', given: POLLING, want: 5000 },
    { name: 'and then less and less often', given: { ...POLLING, quietLooks: 2 }, want: 20_000 },
    { name: 'down to once per TTL', given: { ...POLLING, quietLooks: 9 }, want: 60_000 },
    {
      name: 'a TTL below the lower bound counts as that',
      given: { ...POLLING, quietLooks: 9, ttlSeconds: 0 },
      want: 5000,
    },
    {
      name: 'a TTL above the upper bound counts as that',
      given: { ...POLLING, quietLooks: 2000, ttlSeconds: 86_400 },
      want: 900_000,
    },
    {
      name: 'where nothing is published, often',
      given: { ...POLLING, quietLooks: 9, ttlSeconds: undefined },
      want: 5000,
    },
    {
      name: 'a share that runs out is looked after',
      given: { ...ALL_FOLLOWED, expiresInMs: 30_000 },
      want: 30_001,
    },
    { name: 'but not too soon', given: { ...ALL_FOLLOWED, expiresInMs: 3 }, want: 5000 },
    { name: 'whichever is first', given: { ...POLLING, expiresInMs: 30_000 }, want: 5000 },
  ]
  for (const { name, given, want } of table) t.equal(nextLookMs(given, BOUNDS), want, name)
  t.end()
})
