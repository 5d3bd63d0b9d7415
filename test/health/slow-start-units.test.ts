import fc from 'fast-check'
import t from 'tap'
import { RRType } from '../../src/dns/iana/types.ts'
import { scanAddress } from '../../src/dns/text/address.ts'
import { findDownTargets } from '../../src/health/down-targets.ts'
import {
  findSlowStartUnits,
  SLOW_START_UNITS,
  scaleWeights,
} from '../../src/health/slow-start-units.ts'
import type { Endpoint } from '../../src/records/dns-record.ts'
import { WEIGHT_MAX } from '../../src/steering/candidate.ts'
import { wire } from '../support/zone-names.ts'

/** `owner type target[,target]`. */
function endpoint(text: string): Endpoint {
  const [owner = '', type = '', targets = ''] = text.split(' ')
  const rdata = targets
    .split(',')
    .map((target) => (type === 'CNAME' ? wire(`${target}.`) : scanAddress(target)!.bytes))
  const shared = { ttlSeconds: 60, setIdentifier: '', weight: undefined, codes: [] }
  return {
    ...shared,
    owner: wire(`${owner}.`),
    type: RRType[type as 'A']!,
    isDefault: false,
    rdata,
  }
}

t.test('the part of its weight that an endpoint gets', (t) => {
  const chain = [
    'a.test CNAME geo.a.test',
    'geo.a.test CNAME one.a.test',
    'geo.a.test CNAME two.a.test',
    'one.a.test A 192.0.2.1',
    'two.a.test A 192.0.2.2',
  ]
  const table: readonly {
    name: string
    given: readonly string[]
    rising: Readonly<Record<string, number>>
    down?: readonly string[]
    want: readonly number[]
  }[] = [
    { name: 'all that never left', given: chain, rising: {}, want: [20, 20, 20, 20, 20] },
    {
      name: 'the way to what rises, as long as nothing else is there',
      given: chain,
      rising: { '192.0.2.1': 3 },
      want: [20, 3, 20, 3, 20],
    },
    {
      name: 'all of it, where all rises',
      given: chain,
      rising: { '192.0.2.1': 3, '192.0.2.2': 5 },
      want: [5, 3, 5, 3, 5],
    },
    {
      name: 'an address beside one that never left',
      given: ['a.test A 192.0.2.1,192.0.2.2'],
      rising: { '192.0.2.1': 1 },
      want: [20],
    },
    {
      name: 'an address beside one that is down',
      given: ['a.test A 192.0.2.1,192.0.2.2'],
      rising: { '192.0.2.1': 1 },
      down: ['192.0.2.2'],
      want: [1],
    },
    {
      name: 'a name outside',
      given: ['a.test CNAME lb.example.net', 'b.test CNAME other.example.net'],
      rising: { 'lb.example.net': 7 },
      want: [7, 20],
    },
    {
      name: 'an IPv6 address, however written',
      given: ['a.test AAAA 2001:db8::1'],
      rising: { '2001:DB8:0::1': 9 },
      want: [9],
    },
    {
      name: 'what is neither address nor name',
      given: ['a.test A 192.0.2.1'],
      rising: { '!': 9 },
      want: [20],
    },
    {
      name: 'a loop',
      given: ['a.test CNAME b.test', 'b.test CNAME a.test'],
      rising: { 'c.test': 1 },
      want: [20, 20],
    },
  ]
  for (const { name, given, rising, down = [], want } of table) {
    const endpoints = given.map(endpoint)
    const list = Object.entries(rising).map(([address, units]) => ({ address, units }))
    t.strictSame(findSlowStartUnits(endpoints, list, findDownTargets(endpoints, down)), want, name)
  }
  t.end()
})

t.test('weights while some rise', (t) => {
  const table: readonly {
    name: string
    weights: readonly (number | undefined)[]
    units: readonly number[]
    want: readonly (number | undefined)[]
  }[] = [
    { name: 'no endpoint starts slowly', weights: [1, 2], units: [20, 20], want: [1, 2] },
    {
      name: 'no endpoint has a weight',
      weights: [undefined, undefined],
      units: [1, 20],
      want: [undefined, undefined],
    },
    { name: 'exact, for small weights too', weights: [1, 2], units: [1, 20], want: [1, 40] },
    { name: 'all alike: the proportions stay', weights: [1, 2], units: [3, 3], want: [3, 6] },
    {
      name: 'none given counts as the default',
      weights: [120, undefined],
      units: [20, 10],
      want: [2400, 1200],
    },
    { name: 'a standby stays one', weights: [0, 5], units: [1, 20], want: [0, 100] },
    {
      name: 'the largest weight has no room to grow',
      weights: [WEIGHT_MAX, 1],
      units: [20, 1],
      want: [WEIGHT_MAX, 1],
    },
  ]
  for (const { name, weights, units, want } of table) {
    t.strictSame(scaleWeights(weights, units), want, name)
  }
  t.end()
})

t.test('scaled weights are weights, never zero for what was not', async () => {
  const weight = fc.option(fc.integer({ min: 0, max: WEIGHT_MAX }), { nil: undefined })
  const member = fc.tuple(weight, fc.integer({ min: 1, max: SLOW_START_UNITS }))
  const property = fc.property(fc.array(member, { minLength: 1, maxLength: 20 }), (members) => {
    const weights = members.map(([value]) => value)
    const scaled = scaleWeights(
      weights,
      members.map(([, units]) => units),
    )
    return scaled.every((value, i) => {
      if (value === undefined) return weights.every((w) => w === undefined)
      const isFit = Number.isInteger(value) && value >= 0 && value <= WEIGHT_MAX
      return isFit && (value === 0) === (weights[i] === 0)
    })
  })
  fc.assert(property, { seed: 1, numRuns: 500 })
})
