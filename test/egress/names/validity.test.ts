import t from 'tap'
import { type AddressFact, NO_OUTCOME, type Outcomes } from '../../../src/egress/names/facts.ts'
import {
  delta10Validity,
  dnsNameResolverValidity,
  floorValidity,
} from '../../../src/egress/names/validity.ts'

function seen(lastSeenS: number, ttlSeconds: number, more: Partial<AddressFact> = {}): AddressFact {
  const endMs = (lastSeenS + ttlSeconds) * 1000
  return {
    family: 1,
    address: '192.0.2.1',
    firstSeenMs: 0,
    lastSeenMs: lastSeenS * 1000,
    ttlSeconds,
    chainTtlSeconds: ttlSeconds,
    server: '',
    chain: [],
    endMs,
    chainEndMs: endMs,
    ...more,
  }
}

/** Failures at these seconds. */
function failing(...atS: number[]): Outcomes {
  const gaps = atS.slice(1).map((at, i) => at - atS[i]!)
  const failures = {
    count: atS.length,
    firstMs: atS[0]! * 1000,
    lastMs: atS.at(-1)! * 1000,
    gapMs: Math.max(0, ...gaps) * 1000,
    reason: 'NXDOMAIN',
  }
  return { 1: { answeredMs: 0, failures }, 2: NO_OUTCOME }
}

const fine: Outcomes = { 1: NO_OUTCOME, 2: NO_OUTCOME }

t.test('DNSNameResolver: TTL, minimum TTL, failures up to the threshold', async (t) => {
  const rule = dnsNameResolverValidity({ minTtlSeconds: 5, failureThreshold: 5 })
  const table: [string, AddressFact, Outcomes, number][] = [
    ['the TTL', seen(10, 30), fine, 40],
    ['a TTL of 0', seen(10, 0), fine, 15],
    [
      'the newest answer, also if an older one ends later',
      seen(10, 5, { endMs: 300_000 }),
      fine,
      15,
    ],
    ['a failure long before the end', seen(10, 30), failing(20), 40],
    ['a failure 5 s before the end', seen(10, 30), failing(35), 40],
    ['a failure 2 s before the end', seen(10, 30), failing(38), 43],
    ['a failure in the grace', seen(10, 30), failing(44), 49],
    ['a failure after the removal', seen(10, 30), failing(46), 40],
    ['a row of failures', seen(10, 30), failing(40, 45, 50, 55, 60), 65],
    ['one more than the threshold', seen(10, 30), failing(40, 45, 50, 55, 60, 65), 40],
    ['a row with a gap', seen(10, 30), failing(40, 100), 40],
    ['failures of the other family', seen(10, 30, { family: 2, address: '::1' }), failing(38), 40],
  ]
  for (const [name, fact, outcomes, want] of table) t.equal(rule(fact, outcomes), want * 1000, name)
})

t.test('delta10, and a floor', async (t) => {
  const fact = seen(10, 30, { chainEndMs: 20_000, endMs: 90_000 })
  t.equal(delta10Validity(3_600_000)(fact, fine), 3_610_000)
  const table: [string, Parameters<typeof floorValidity>[0], number][] = [
    ['the TTL that ends last', { floorMs: 0, graceMs: 0, ofChain: false }, 90_000],
    ['that of the chain', { floorMs: 0, graceMs: 0, ofChain: true }, 20_000],
    ['the floor', { floorMs: 60_000, graceMs: 0, ofChain: true }, 70_000],
    ['and a grace', { floorMs: 60_000, graceMs: 1000, ofChain: true }, 71_000],
  ]
  for (const [name, rule, want] of table) t.equal(floorValidity(rule)(fact, fine), want, name)
})
