import fc from 'fast-check'
import t from 'tap'
import { writeSockaddr } from '../../../../../src/transport/sockaddr.ts'
import { Grouping } from '../../../../../src/transport/udp/batch/grouping/grouping.ts'
import { BATCH, UNIT_CONTROL, UNIT_PACKET } from '../../../../../src/transport/udp/batch/layout.ts'

const GROUPED_OCTETS_MAX = 512

/** A reply of `octets` to a port of a host; `from`: the last octet of the address of ours that was asked. */
interface Reply {
  readonly host?: string
  readonly port: number
  readonly octets: number
  readonly from?: number | undefined
}

const [PKTINFO_SPACE, PKTINFO6_SPACE] = [32, 40]

/** Lays replies out as an outbox does, sorts them, and lists the slots of each group. */
function groupsOf(grouping: Grouping, given: readonly Reply[], first = 0): number[][] {
  const octets = new Uint8Array(BATCH * UNIT_PACKET).fill(0xa5)
  const words = new Uint32Array(octets.buffer)
  const replies = {
    placeOf: new Uint32Array(BATCH),
    spaceOf: new Uint32Array(BATCH),
    lengthOf: new Uint32Array(BATCH),
  }
  given.forEach(({ host = '192.0.2.1', port, octets: length, from }, i) => {
    const slot = first + i
    const place = slot * UNIT_PACKET
    writeSockaddr(octets, place, host, port)
    const isIPv6 = host.includes(':')
    const control = place + UNIT_CONTROL
    // What is behind the address that was asked is another in each slot, and must not count.
    octets[control + 28] = slot
    if (from !== undefined) octets[control + (isIPv6 ? 31 : 20)] = from
    replies.placeOf[slot] = place
    replies.spaceOf[slot] = from === undefined ? 0 : isIPv6 ? PKTINFO6_SPACE : PKTINFO_SPACE
    replies.lengthOf[slot] = length
    if (isIPv6) octets[control + 28] = 0
  })
  const groups = grouping.group(words, replies, first, first + given.length)
  if (groups === given.length) return given.map((_, i) => [first + i])
  return Array.from({ length: groups }, (_, group) => [
    ...grouping.order.subarray(grouping.starts[group], grouping.starts[group + 1]),
  ])
}

t.test(
  'replies with one way and one length make a group, which a shorter one may end',
  async (t) => {
    const a = { port: 1000, octets: 50 }
    const six = { host: '2001:db8::1', port: 1000, octets: 50 }
    const table: { name: string; given: Reply[]; want: number[][] }[] = [
      { name: 'one reply', given: [a], want: [[0]] },
      { name: 'two of the same', given: [a, a], want: [[0, 1]] },
      {
        name: 'of three peers, in the order in which each came first',
        given: [a, a, { ...a, port: 1001 }, a, { ...a, port: 1002 }],
        want: [[0, 1, 3], [2], [4]],
      },
      { name: 'another port', given: [a, { ...a, port: 1001 }], want: [[0], [1]] },
      { name: 'another host', given: [a, { ...a, host: '192.0.2.2' }], want: [[0], [1]] },
      { name: 'a shorter one is the last', given: [a, a, { ...a, octets: 49 }], want: [[0, 1, 2]] },
      { name: 'also if it came first', given: [{ ...a, octets: 49 }, a, a], want: [[1, 2, 0]] },
      {
        name: 'two shorter ones make a group of their own',
        given: [a, a, { ...a, octets: 49 }, { ...a, octets: 49 }],
        want: [
          [0, 1],
          [2, 3],
        ],
      },
      {
        name: 'of all lengths two and two',
        given: [40, 41, 43, 42].map((octets) => ({ ...a, octets })),
        want: [
          [1, 0],
          [2, 3],
        ],
      },
      {
        name: 'a shorter one that goes another way',
        given: [a, { ...a, octets: 49, host: '192.0.2.2' }],
        want: [[0], [1]],
      },
      { name: 'IPv6', given: [six, six], want: [[0, 1]] },
      {
        name: 'another host of IPv6',
        given: [six, { ...six, host: '2001:db8::2' }],
        want: [[0], [1]],
      },
      {
        name: 'one link-local address of two links',
        given: [
          { ...six, host: 'fe80::1%1' },
          { ...six, host: 'fe80::1%2' },
        ],
        want: [[0], [1]],
      },
      {
        name: 'from the address that was asked',
        given: [
          { ...a, from: 1 },
          { ...a, from: 2 },
          { ...a, from: 2 },
        ],
        want: [[0], [1, 2]],
      },
      {
        name: 'the same of IPv6',
        given: [
          { ...six, from: 1 },
          { ...six, from: 2 },
          { ...six, from: 2 },
        ],
        want: [[0], [1, 2]],
      },
      { name: 'asked somewhere and nowhere', given: [a, { ...a, from: 1 }], want: [[0], [1]] },
      {
        name: 'the longest that go together',
        given: Array.from({ length: 3 }, () => ({ ...a, octets: GROUPED_OCTETS_MAX })),
        want: [[0, 1, 2]],
      },
      {
        name: 'longer ones do not',
        given: Array.from({ length: 3 }, () => ({ ...a, octets: GROUPED_OCTETS_MAX + 1 })),
        want: [[0], [1], [2]],
      },
      {
        name: 'a whole batch',
        given: Array.from({ length: BATCH }, () => a),
        want: [[...Array(BATCH).keys()]],
      },
    ]
    for (const { name, given, want } of table) {
      t.strictSame(groupsOf(new Grouping(), given), want, name)
    }
  },
)

t.test('only the given slots are grouped', async (t) => {
  const a = { port: 1000, octets: 50 }
  t.strictSame(groupsOf(new Grouping(), [a, { ...a, port: 7 }, a], 5), [[5, 7], [6]])
})

t.test('a long reply leads no group where a short one was before', async (t) => {
  const grouping = new Grouping()
  const a = { port: 1000, octets: 50 }
  groupsOf(grouping, [a])
  t.strictSame(groupsOf(grouping, [{ ...a, octets: 1200 }, a]), [[0], [1]])
})

t.test(
  'whatever came before, each reply is in one group, which goes one way and can be cut',
  async () => {
    const reply = fc.record({
      host: fc.constantFrom('192.0.2.1', '192.0.2.2', '2001:db8::1', 'fe80::1%1', 'fe80::1%2'),
      // 1 and 256 are the same to the table.
      port: fc.constantFrom(1, 256, 5353, 40_000, 65_535),
      octets: fc.constantFrom(30, 31, 287, GROUPED_OCTETS_MAX, GROUPED_OCTETS_MAX + 1),
      from: fc.option(fc.integer({ min: 1, max: 2 }), { nil: undefined }),
    })
    const grouping = new Grouping()
    fc.assert(
      fc.property(fc.array(reply, { minLength: 1, maxLength: BATCH }), (given) => {
        const groups = groupsOf(grouping, given)
        const slots = groups.flat().sort((x, y) => x - y)
        if (slots.join() !== [...given.keys()].join()) return false
        return groups.every((group) => {
          const ways = new Set(group.map((slot) => JSON.stringify({ ...given[slot], octets: 0 })))
          const lengths = group.map((slot) => given[slot]!.octets)
          const [longest] = lengths
          const last = lengths.pop()!
          const isEven = lengths.every((octets) => octets === longest) && last <= longest!
          return ways.size === 1 && isEven && (group.length === 1 || longest! <= GROUPED_OCTETS_MAX)
        })
      }),
      { seed: 1, numRuns: 300 },
    )
  },
)
