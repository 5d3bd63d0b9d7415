import fc from 'fast-check'
import t from 'tap'
import { compareNames, isSubdomain, lowerName } from '../../../src/dns/name/name.ts'
import { nameAfter } from '../../../src/plugins/dnssec/compact-denial.ts'
import { runs } from '../../support/runs.ts'
import { wire } from '../../support/zone-names.ts'

const NAME_OCTETS_MAX = 255
const LABEL_OCTETS_MAX = 63

const octet = fc.constantFrom(0, 0x40, 0x41, 0x5a, 0x61, 0x7a, 0xfe, 0xff, 0xff, 0xff, 0xff)
const label = fc.oneof(
  fc.array(octet, { minLength: 1, maxLength: LABEL_OCTETS_MAX }),
  fc.tuple(octet, fc.constantFrom(1, 62, LABEL_OCTETS_MAX)).map(([one, n]) => Array(n).fill(one)),
)
const SHORT = wire('k.example.')
/** Names in a zone, many of them as long as a name may be. */
const names = fc
  .record({
    apex: fc.constantFrom(SHORT, Buffer.concat([Buffer.of(63), Buffer.alloc(63, 0xff), SHORT])),
    labels: fc.array(label, { maxLength: 5 }),
    last: octet,
    room: fc.nat(3),
  })
  .map(({ apex, labels, last, room }) => {
    let name: Uint8Array = apex
    for (const one of labels) {
      if (name.length + one.length < NAME_OCTETS_MAX - room)
        name = Buffer.concat([Buffer.of(one.length), Buffer.from(one), name])
    }
    const left = NAME_OCTETS_MAX - room - name.length - 1
    if (left < 1) return { apex, name }
    const octets = Math.min(left, LABEL_OCTETS_MAX)
    return { apex, name: Buffer.concat([Buffer.of(octets), Buffer.alloc(octets, last), name]) }
  })

t.test('the name after another one is in the zone and after it, or it is the apex', async (t) => {
  fc.assert(
    fc.property(names, ({ apex, name }) => {
      const next = nameAfter(name, 0, apex)
      t.ok(next.length <= NAME_OCTETS_MAX)
      t.ok(isSubdomain(next, apex))
      t.strictSame(Buffer.from(lowerName(next)), Buffer.from(next))
      const isLast = compareNames(next, apex) === 0
      t.ok(isLast || compareNames(next, lowerName(name)) > 0, `${name} ${next}`)
    }),
    { numRuns: runs(2000) },
  )
})

t.test('nothing is between a name without room and the one after it', async (t) => {
  const apex = wire('example.')
  const under = (...labels: readonly (readonly [octets: number, octet: number])[]): Uint8Array => {
    const parts = labels.map(([n, one]) => Buffer.concat([Buffer.of(n), Buffer.alloc(n, one)]))
    return Buffer.concat([...parts, apex])
  }
  const [last, a] = [0xff, 0x61]
  const table = [
    ['\\000 below it', under([1, a]), Buffer.concat([Buffer.of(1, 0), under([1, a])])],
    [
      'the next octet',
      under([53, a], [63, a], [63, a], [63, a]),
      Buffer.concat([
        Buffer.of(53),
        Buffer.alloc(52, a),
        Buffer.of(a + 1),
        under([63, a], [63, a], [63, a]),
      ]),
    ],
    [
      'beside the name above',
      under([54, last], [63, last], [62, a], [63, a]),
      Buffer.concat([Buffer.of(63), Buffer.alloc(62, a), Buffer.of(0), under([63, a])]),
    ],
    ['the apex', under([53, last], [63, last], [63, last], [63, last]), apex],
  ] as const
  for (const [what, name, next] of table) {
    t.strictSame(Buffer.from(nameAfter(name, 0, apex)), Buffer.from(next), what)
  }
})
