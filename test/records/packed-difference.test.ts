import fc from 'fast-check'
import t from 'tap'
import { scanName } from '../../src/dns/name/name.ts'
import type { DnsRecord, Endpoint } from '../../src/records/dns-record.ts'
import { type PackedRecord, packRecord, unpackRecord } from '../../src/records/pack.ts'
import { comparePacked } from '../../src/records/packed-difference.ts'
import { lowerNameKey } from '../../src/records/validate/names.ts'

const keyOf = (host: string): string => lowerNameKey(scanName(`${host}.`)!)

/** `text`: owner, last octet of its address, [weight], [set identifier], [codes are left out]. */
function endpoint(text: string): Endpoint {
  const [owner, last, weight, setIdentifier = ''] = text.split(' ')
  return {
    owner: scanName(`${owner}.`)!,
    type: 1,
    ttlSeconds: 60,
    setIdentifier,
    weight: weight === undefined || weight === '-' ? undefined : Number(weight),
    codes: [],
    isDefault: false,
    rdata: [Uint8Array.of(192, 0, 2, Number(last))],
  }
}

function packed(endpoints: readonly string[], changes: Partial<DnsRecord> = {}): PackedRecord {
  return packRecord({
    namespace: 'n',
    name: 'r',
    createdSeconds: 1,
    isAggregate: false,
    isWildcardHost: false,
    zoneLabel: '',
    rootHost: scanName('k.example.')!,
    endpoints: endpoints.map(endpoint),
    healthCheck: undefined,
    ...changes,
  })
}

const CASES = [
  { name: 'equal records differ in nothing', from: 'a 1,b 2', to: 'a 1,b 2', changed: '' },
  { name: 'another address', from: 'a 1,b 2,c 3', to: 'a 1,b 9,c 3', changed: 'b' },
  { name: 'another weight', from: 'a 1 5,b 2', to: 'a 1 6,b 2', changed: 'a' },
  { name: 'a set identifier that comes', from: 'a 1 5,b 2', to: 'a 1 5 x,b 2', changed: 'a' },
  { name: 'one that comes at the end', from: 'a 1', to: 'a 1,b 2', changed: 'b' },
  { name: 'one that comes at the beginning', from: 'b 2', to: 'a 1,b 2', changed: 'a' },
  { name: 'one that goes', from: 'a 1,b 2,c 3', to: 'a 1,c 3', changed: 'b' },
  {
    name: 'two that change places, and all between',
    from: 'a 1,b 2,c 3',
    to: 'c 3,b 2,a 1',
    changed: 'a,b,c',
  },
  {
    name: 'an owner with more endpoints around the one that changed',
    from: 'a 1,b 2,a 3,c 4,a 5',
    to: 'a 1,b 2,a 9,c 4,a 5',
    changed: 'a',
  },
]

for (const { name, from, to, changed } of CASES) {
  t.test(`difference: ${name}`, (t) => {
    const [before, after] = [from, to].map((text) => packed(text.split(',')))
    const difference = comparePacked(before!, after!)
    const want = changed === '' ? [] : changed.split(',').map(keyOf)
    t.strictSame([...difference!.changed].sort(), want.sort())
    const owners = to.split(',').map((text) => keyOf(text.split(' ')[0]!))
    const same = owners.filter((key) => !want.includes(key))
    t.strictSame([...new Set(difference!.same)].sort(), [...new Set(same)].sort())
    t.end()
  })
}

t.test('records that say something else of themselves are not compared', (t) => {
  const before = packed(['a 1'])
  for (const [name, after] of [
    ['age', packed(['a 1'], { createdSeconds: 2 })],
    ['root host', packed(['a 1'], { rootHost: scanName('l.example.')! })],
    ['longer root host', packed(['a 1'], { rootHost: scanName('x.k.example.')! })],
    ['label', packed(['a 1'], { zoneLabel: 'k.example' })],
    ['settings', packed(['a 1'], { settings: { allDown: 'closed' } })],
    ['aggregate', packed(['a 1'], { isAggregate: true })],
    ['no endpoints', packed([])],
  ] as const) {
    t.equal(comparePacked(before, after), undefined, name)
    t.equal(comparePacked(after, before), undefined, name)
  }
  t.end()
})

t.test('owners that did not change have the same endpoints, and parts are as in the whole', (t) => {
  const text = fc
    .tuple(fc.constantFrom('a', 'b', 'c', 'd'), fc.nat(3), fc.constantFrom('', ' 0', ' 7 é'))
    .map(([owner, last, rest]) => `${owner} ${last}${rest}`)
  const list = fc.array(text, { minLength: 1, maxLength: 8 })
  const property = fc.property(list, list, (from, to) => {
    const [before, after] = [packed(from), packed(to)]
    const { changed, same } = comparePacked(before, after)!
    const of = (record: PackedRecord, wants: (key: string) => boolean): Endpoint[] =>
      unpackRecord(record).endpoints.filter(({ owner }) => wants(lowerNameKey(owner)))
    for (const key of same) {
      t.notOk(changed.has(key))
      t.strictSame(
        of(before, (k) => k === key),
        of(after, (k) => k === key),
      )
    }
    for (const record of [before, after]) {
      const isKnown = (key: string): boolean => changed.has(key) || same.includes(key)
      t.strictSame(of(record, isKnown), unpackRecord(record).endpoints)
      t.strictSame(
        unpackRecord(record, changed).endpoints,
        of(record, (k) => changed.has(k)),
      )
    }
    return t.passing()
  })
  fc.assert(property, { seed: 5, numRuns: 300 })
  t.end()
})
