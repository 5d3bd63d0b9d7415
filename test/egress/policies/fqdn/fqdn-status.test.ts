import t from 'tap'
import { scanCidr } from '../../../../src/dns/text/address.ts'
import { AddressRules } from '../../../../src/egress/learned/address-rules.ts'
import type { AddressEnd } from '../../../../src/egress/learned/learned-table.ts'
import { fqdnGrants, restoreEnds } from '../../../../src/egress/policies/fqdn/fqdn-grants.ts'
import {
  type CachedName,
  differs,
  type FqdnStatus,
  printStatus,
  readCache,
} from '../../../../src/egress/policies/fqdn/fqdn-status.ts'

const WALL = Date.parse('2026-01-01T00:00:00Z')
const NOW = 5_000_000
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const rules = {
  addresses: new AddressRules([scanCidr('10.96.0.0/12')!], [scanCidr('::1/128')!]),
  skipsAaaa: false,
}

/** By CIDR, the milliseconds that are left. */
const cached = (left: Record<string, number>, nextMs = WALL): CachedName => ({
  nextMs,
  expiryMs: new Map(Object.entries(left).map(([cidr, ms]) => [cidr, WALL + ms])),
})
const restored = (left: Record<string, number>) => restoreEnds(cached(left), HOUR, WALL, NOW)
const granted = (ends: readonly AddressEnd[], nowMs = NOW, more = {}) => {
  const { untilMs } = fqdnGrants(ends, { ...rules, ...more }, nowMs)
  return Object.fromEntries([...untilMs].map(([cidr, endMs]) => [cidr, endMs - NOW]))
}

t.test('the cache of three addresses after a restart', async (t) => {
  const left = { '10.0.0.1/32': MINUTE, '::1/128': MINUTE, '127.0.0.1/32': -MINUTE }
  t.strictSame(granted(restored(left)), { '10.0.0.1/32': MINUTE, '::1/128': MINUTE })
  t.strictSame(granted(restored(left), NOW + MINUTE), {}, 'a minute later')
  t.strictSame(granted(restored(left), NOW, { skipsAaaa: true }), { '10.0.0.1/32': MINUTE })
  t.strictSame(restored({ '10.0.0.1/32': 0 }), [], 'all expired: the name is to be resolved first')
})

t.test('a stored expiry is not extended', async (t) => {
  t.strictSame(granted(restored({ '192.0.2.1/32': 10 * HOUR })), { '192.0.2.1/32': HOUR })
  t.strictSame(granted(restored({ '0.0.0.0/0': HOUR, '192.0.2.0/24': HOUR, x: HOUR })), {})
})

t.test('a new answer and the stored expiry: the later one counts', async (t) => {
  const [old] = restored({ '192.0.2.1/32': MINUTE })
  const seen: AddressEnd = ['192.0.2.1', NOW + 59 * MINUTE]
  const { untilMs } = fqdnGrants([seen, old!], rules, NOW)
  t.equal(untilMs.get('192.0.2.1/32'), NOW + 59 * MINUTE)
})

t.test('addresses that are never granted', async (t) => {
  const ends = restored({ '127.0.0.1/32': HOUR, '169.254.169.254/32': HOUR, '10.96.0.1/32': HOUR })
  const { untilMs, denied } = fqdnGrants(ends, rules, NOW)
  t.equal(untilMs.size, 0)
  t.strictSame(
    [...denied],
    [
      ['127.0.0.1', 'loopback'],
      ['169.254.169.254', 'link-local'],
      ['10.96.0.1', 'cluster'],
    ],
  )
})

t.test('the status in the form of the API', async (t) => {
  const cache = new Map([
    ['b.example', cached({ '192.0.2.2/32': 1, '192.0.2.1/32': HOUR }, WALL + 30_800)],
    ['a.example', cached({})],
  ])
  const status: FqdnStatus = { state: 'Active', reason: '', nextSyncMs: WALL, cache }
  const printed = printStatus(status)
  t.equal(
    JSON.stringify(printed),
    JSON.stringify({
      state: 'Active',
      nextSyncTime: '2026-01-01T00:00:00Z',
      cache: {
        'a.example': { nextUdateTime: '2026-01-01T00:00:00Z', ipExpiration: {} },
        'b.example': {
          nextUdateTime: '2026-01-01T00:00:31Z',
          ipExpiration: {
            '192.0.2.1/32': '2026-01-01T01:00:00Z',
            '192.0.2.2/32': '2026-01-01T00:00:01Z',
          },
        },
      },
    }),
  )
  t.equal(readCache(printed).get('b.example')?.expiryMs.get('192.0.2.1/32'), WALL + HOUR)
  t.strictSame(readCache(undefined), new Map())
  const odd = { cache: { a: 1, b: { nextUdateTime: 'soon', ipExpiration: { x: 'later' } } } }
  t.strictSame(readCache(odd), new Map([['b', { nextMs: 0, expiryMs: new Map() }]]))
  t.strictSame(
    printStatus({ state: 'Pending', reason: 'r', nextSyncMs: undefined, cache: undefined }),
    { state: 'Pending', reason: 'r' },
  )
})

t.test('a status is written only if it says something else', async (t) => {
  const statusOf = (cache: FqdnStatus['cache'], more: Partial<FqdnStatus> = {}): FqdnStatus => {
    return { state: 'Active', reason: '', nextSyncMs: WALL, cache, ...more }
  }
  const entry = cached({ '192.0.2.1/32': HOUR })
  const base = statusOf(new Map([['a.example', entry]]))
  const stored = printStatus(base)
  const table: [string, FqdnStatus, boolean][] = [
    ['the same', base, false],
    ['another time of the next lookup', { ...base, nextSyncMs: WALL + HOUR }, false],
    ['an expiry a little later', later(4 * MINUTE), false],
    ['an expiry much later', later(6 * MINUTE), true],
    ['another state', { ...base, state: 'Pending' }, true],
    ['another reason', { ...base, reason: 'r' }, true],
    ['a new name', statusOf(new Map([...base.cache!, ['b.example', cached({})]])), true],
    ['no name', statusOf(new Map()), true],
    ['another name', statusOf(new Map([['b.example', entry]])), true],
    ['another address', statusOf(new Map([['a.example', cached({ '192.0.2.2/32': HOUR })]])), true],
    ['no address', statusOf(new Map([['a.example', cached({})]])), true],
    [
      'an earlier lookup',
      statusOf(new Map([['a.example', { ...entry, nextMs: WALL - HOUR }]])),
      true,
    ],
    ['an API without a cache', statusOf(undefined), false],
  ]
  for (const [name, status, want] of table) {
    t.equal(differs(stored, status, 5 * MINUTE), want, name)
  }
  t.equal(differs(undefined, base, 5 * MINUTE), true)

  function later(ms: number): FqdnStatus {
    return statusOf(new Map([['a.example', cached({ '192.0.2.1/32': HOUR + ms })]]))
  }
})
