import t from 'tap'
import { RRType } from '../../../src/dns/iana/types.ts'
import type { EndpointDrain } from '../../../src/health/drain/drain.ts'
import { findOutTargets } from '../../../src/health/drain/drained-targets.ts'
import { scanDrainSelector } from '../../../src/health/drain/selector.ts'
import type { Endpoint } from '../../../src/records/dns-record.ts'
import { wire } from '../../support/zone-names.ts'

function endpoint(owner: string, target: string): Endpoint {
  const common = { ttlSeconds: 60, setIdentifier: '', weight: undefined, codes: [] }
  const isAlias = target.endsWith('.')
  const rdata = [isAlias ? wire(target) : Uint8Array.of(192, 0, 2, Number(target))]
  const type = isAlias ? RRType.CNAME : RRType.A
  return { ...common, owner: wire(owner), type, rdata, isDefault: false, point: undefined }
}

function drain(reason: string): EndpointDrain {
  const selector = scanDrainSelector(['address:192.0.2.1'])
  if (typeof selector === 'string') throw new Error(selector)
  return { selector, reason, actor: '', createdMs: undefined, untilMs: undefined }
}

/** Returns the reason why each endpoint is drained; '' = it is not. */
function reasons(
  endpoints: readonly Endpoint[],
  drained: Readonly<Record<number, string>>,
  chainMax?: number,
): string[] {
  const marks = endpoints.map((_, i) => {
    return new Map(drained[i] === undefined ? [] : [[0, drain(drained[i])] as const])
  })
  const out = findOutTargets(endpoints, [], { endpoints: marks }, chainMax)
  return out.drained!.map((targets) => targets.get(0)?.reason ?? '')
}

const CHAIN = [endpoint('a.', 'b.'), endpoint('b.', 'c.'), endpoint('c.', '1')]

t.test('a CNAME has the nearest drain behind it', async (t) => {
  t.same(reasons(CHAIN, { 2: 'x' }), ['x', 'x', 'x'])
  t.same(reasons(CHAIN, { 1: 'y', 2: 'x' }), ['y', 'y', 'x'])
  t.same(reasons(CHAIN, { 2: 'x' }, 0), ['', '', 'x'], 'what it leads to does not count')
  t.same(reasons(CHAIN, { 2: 'x' }, 1), ['', 'x', 'x'])
  const two = [...CHAIN, endpoint('c.', '2')]
  t.same(reasons(two, { 2: 'x' }), ['', '', 'x', ''], 'another target is in service')
  t.same(reasons(two, { 2: 'x', 3: 'y' }), ['x', 'x', 'x', 'y'])
  const loop = [endpoint('a.', 'b.'), endpoint('b.', 'a.')]
  t.same(reasons(loop, { 1: 'x' }), ['x', 'x'])
})

t.test('the work grows with the number of endpoints, not faster', async (t) => {
  const ENDPOINTS = 1000
  let reads = 0
  const all = Array.from({ length: ENDPOINTS }, (_, i) => endpoint(`h${i}.`, 'x.'))
  const chain = Array.from({ length: 8 }, (_, i) => [
    endpoint(`c${i}.`, `c${i + 1}.`),
    endpoint(`c${i}.`, `c${i + 1}.`),
  ]).flat()
  const counted = new Proxy([...all, endpoint('x.', 'c0.'), ...chain, endpoint('c8.', '1')], {
    get: (array, key) => {
      if (typeof key === 'string' && /^\d+$/.test(key)) reads++
      return Reflect.get(array, key)
    },
  })
  const found = reasons(counted, { [counted.length - 1]: 'x' })
  t.same(new Set(found), new Set(['x']))
  t.ok(reads < 60 * counted.length, `${reads} reads`)
})
