import fc from 'fast-check'
import t from 'tap'
import { type Address, scanAddress } from '../../../src/dns/text/address.ts'
import type { Allowance } from '../../../src/egress/rules/allowance.ts'
import { CompiledRules } from '../../../src/egress/rules/compiled-rules.ts'
import { type Connection, includesPort } from '../../../src/egress/rules/connection.ts'
import type { PortProtocol } from '../../../src/egress/rules/port-range.ts'
import type { EgressRule, TierList } from '../../../src/egress/rules/rule.ts'
import { runs } from '../../support/runs.ts'
import { type AddressName, decisionOf, selectsName } from '../decide-connection.ts'
import { matched, nameOf, type RuleTexts, rule, selectorOf } from '../egress-rules.ts'

function named(text: string, endMs: number, isZombie = false): AddressName {
  return { name: nameOf(text), endMs, isZombie }
}

function print(allowances: readonly Allowance[]): string[] {
  return allowances.map(({ ports, endMs }) => {
    if (ports === undefined) return `all until ${endMs}`
    return `${ports.protocol} ${ports.first}-${ports.last} until ${endMs}`
  })
}

const A = scanAddress('192.0.2.1')!
const DEFAULT_DENY = (...rules: readonly EgressRule[]): TierList => [{ rules, otherwise: 'deny' }]

t.test('what names allow', async (t) => {
  const names = [named('www.a.', 100), named('x.b.', 200), named('old.a.', 300, true)]
  const any = (texts: RuleTexts) => rule('accept', texts)
  const table: [string, readonly TierList[], string[]][] = [
    ['no lists', [], []],
    ['an exact name', [DEFAULT_DENY(any({ names: ['www.a'] }))], ['all until 100']],
    ['another name', [DEFAULT_DENY(any({ names: ['www.c'] }))], []],
    [
      'ports',
      [DEFAULT_DENY(any({ names: ['*.b'], ports: ['tcp 443', 'udp 5-9'] }))],
      ['tcp 443-443 until 200', 'udp 5-9 until 200'],
    ],
    ['a zombie ends a rule of TTLs', [DEFAULT_DENY(any({ names: ['old.a'] }))], []],
    [
      'a zombie lets a rule of connections live',
      [DEFAULT_DENY(any({ names: ['old.a', 'www.a'], lasts: 'connections' }))],
      ['all until 300'],
    ],
    [
      'the last end counts',
      [DEFAULT_DENY(any({ names: ['*.a'] }), any({ names: ['*.b'], ports: ['tcp 80'] }))],
      ['all until 100', 'tcp 80-80 until 200'],
    ],
    [
      'a denied network stands in front',
      [DEFAULT_DENY(rule('deny', { networks: ['192.0.2.0/24'] }), any({ names: ['www.a'] }))],
      [],
    ],
    [
      'an exception from it',
      [
        DEFAULT_DENY(
          rule('deny', { networks: ['192.0.2.0/24 except 192.0.2.1/32'] }),
          any({ names: ['www.a'] }),
        ),
      ],
      ['all until 100'],
    ],
    [
      'denied ports',
      [
        DEFAULT_DENY(
          rule('deny', { networks: ['0.0.0.0/0'], ports: ['tcp 25'] }),
          any({ names: ['www.a'] }),
        ),
      ],
      [
        'tcp 0-24 until 100',
        'tcp 26-65535 until 100',
        'udp 0-65535 until 100',
        'sctp 0-65535 until 100',
      ],
    ],
    [
      'a network that is allowed anyway',
      [DEFAULT_DENY(any({ names: ['www.a'] }), any({ networks: ['192.0.0.0/8'] }))],
      [],
    ],
    [
      'ports that are allowed anyway',
      [
        DEFAULT_DENY(
          any({ networks: ['192.0.0.0/8'], ports: ['tcp 443'] }),
          any({ names: ['www.a'], ports: ['tcp 440-445'] }),
        ),
      ],
      ['tcp 440-442 until 100', 'tcp 444-445 until 100'],
    ],
    [
      'each list must allow',
      [
        DEFAULT_DENY(any({ names: ['*.a'] })),
        DEFAULT_DENY(any({ names: ['*.b'], ports: ['udp 53'] })),
      ],
      ['udp 53-53 until 100'],
    ],
    [
      'pass leads to the next tier',
      [
        [
          {
            rules: [rule('pass', { networks: ['192.0.2.1/32'] }), any({ names: ['*.b'] })],
            otherwise: 'deny',
          },
          { rules: [any({ names: ['www.a'] })], otherwise: 'deny' },
        ],
      ],
      ['all until 100'],
    ],
  ]
  for (const [what, lists, want] of table) {
    const compiled = new CompiledRules(lists)
    t.strictSame(print(compiled.allowancesOf(A, matched(compiled, names), 50)), want, what)
    t.strictSame(compiled.allowancesOf(A, [], 50), [], `${what}, no names`)
  }
  const compiled = new CompiledRules([DEFAULT_DENY(any({ names: ['*.a'] }))])
  t.equal(compiled.allowancesOf(A, matched(compiled, names), 100).length, 1, 'valid at its end')
  t.equal(compiled.allowancesOf(A, matched(compiled, names), 101).length, 0)
  t.strictSame(
    compiled.selectorsOf(nameOf('www.a.')).map(({ text }) => text),
    ['*.a'],
  )
})

const network = fc.constantFrom(
  ...['0.0.0.0/0', '10.0.0.0/8', '10.1.0.0/16', '10.1.2.3/32', '192.0.2.0/25', '::/0', 'fd00::/9'],
  ...['2001:db8::/33', '2001:db8::1/128', '10.0.0.0/8 except 10.1.0.0/16 10.2.0.0/17'],
  ...['0.0.0.0/0 except 10.0.0.0/8', '::/0 except 2001:db8::/32 fd00::/8'],
)
const address = fc
  .constantFrom(
    '10.1.2.3',
    '10.1.2.4',
    '10.2.0.1',
    '192.0.2.1',
    '192.0.2.129',
    '2001:db8::1',
    'fd00::1',
  )
  .map((text) => scanAddress(text)!)
const someNames = ['a.', 'www.a.', 'x.www.a.', 'b.', 'www.b.', 'c.']
const selector = fc.constantFrom('a', 'www.a', '*.a', '*.www.a', 'b', '*.b', 'd')
const protocol = fc.constantFrom<PortProtocol>('tcp', 'udp', 'sctp')
const ports = fc
  .tuple(protocol, fc.constantFrom(0, 1, 79, 80, 443, 65_535), fc.constantFrom(0, 1, 20, 65_535))
  .map(([protocol, first, more]) => `${protocol} ${first}-${Math.min(65_535, first + more)}`)
const arbitraryRule = fc
  .record({
    action: fc.constantFrom<EgressRule['action']>('accept', 'accept', 'deny', 'pass'),
    networks: fc.array(network, { maxLength: 2 }),
    names: fc.array(selector, { maxLength: 2 }),
    ports: fc.option(fc.array(ports, { maxLength: 3 }), { nil: undefined }),
    lasts: fc.constantFrom<EgressRule['lasts']>('ttl', 'connections'),
  })
  .map(({ action, networks, names, ports, lasts }) =>
    rule(action, {
      networks,
      names: action === 'accept' ? names : [],
      ...(ports === undefined ? {} : { ports }),
      lasts,
    }),
  )
const tier = fc.record({
  rules: fc.array(arbitraryRule, { maxLength: 4 }),
  otherwise: fc.constantFrom<'deny' | 'pass'>('deny', 'deny', 'pass'),
})
const lists = fc.array(fc.array(tier, { maxLength: 3 }), { maxLength: 2 })
const names = fc.array(
  fc
    .tuple(fc.constantFrom(...someNames), fc.integer({ min: 0, max: 9 }), fc.boolean())
    .map(([text, endMs, isZombie]) => named(text, endMs, isZombie)),
  { maxLength: 4 },
)

/** The first ports of all ranges of equal decisions, and the last ones. */
function portsAtEdges(lists: readonly TierList[], protocol: PortProtocol): readonly number[] {
  const ports = new Set([0, 65_535])
  for (const { rules } of lists.flat()) {
    for (const range of rules.flatMap(({ ports = [] }) => ports)) {
      if (range.protocol !== protocol) continue
      for (const port of [range.first - 1, range.first, range.last, range.last + 1]) {
        if (port >= 0 && port <= 65_535) ports.add(port)
      }
    }
  }
  return [...ports]
}

function connectionsTo(address: Address, lists: readonly TierList[]): readonly Connection[] {
  const protocols: readonly PortProtocol[] = ['tcp', 'udp', 'sctp']
  return protocols.flatMap((protocol) =>
    portsAtEdges(lists, protocol).map((port) => ({ address, protocol, port })),
  )
}

/** True if an allowance includes the connection at a time. */
function allows(allowances: readonly Allowance[], connection: Connection, atMs: number): boolean {
  const { protocol, port } = connection
  return allowances.some(({ ports, endMs }) => {
    return endMs >= atMs && includesPort(ports && [ports], protocol, port)
  })
}

t.test('networks and allowances together decide as the reference does', async () => {
  fc.assert(
    fc.property(
      lists,
      address,
      names,
      fc.integer({ min: 0, max: 9 }),
      (lists, address, names, nowMs) => {
        const compiled = new CompiledRules(lists)
        const allowances = compiled.allowancesOf(address, matched(compiled, names), nowMs)
        for (let atMs = nowMs; atMs < 11; atMs++) {
          const valid = names.filter(({ endMs }) => endMs >= atMs)
          for (const connection of connectionsTo(address, lists)) {
            const isStatic = decisionOf(lists, connection, []) === 'accept'
            const isAllowed = isStatic || allows(allowances, connection, atMs)
            if (isAllowed !== (decisionOf(lists, connection, valid) === 'accept')) return false
          }
          // Protocols without ports: never more than the reference allows.
          const other: Connection = { address, protocol: 'other', port: 0 }
          const isOther = allows(allowances, other, atMs)
          if (isOther && decisionOf(lists, other, valid) === 'deny') return false
        }
        return true
      },
    ),
    { numRuns: runs(2000) },
  )
})

t.test('an open connection is decided as the reference does', async () => {
  fc.assert(
    fc.property(lists, address, names, (lists, address, names) => {
      const compiled = new CompiledRules(lists)
      const places = names.flatMap(({ name }) => compiled.rulesOf(name))
      const live = names.map((name) => ({ ...name, isZombie: false }))
      const other: Connection = { address, protocol: 'other', port: 0 }
      return [other, ...connectionsTo(address, lists)].every((connection) => {
        const isAllowed = decisionOf(lists, connection, live) === 'accept'
        return compiled.accepts(connection, places) === isAllowed
      })
    }),
    { numRuns: runs(1000) },
  )
})

t.test('allowances are few: neighbours differ, and none says what another says', async () => {
  fc.assert(
    fc.property(lists, address, names, (lists, address, names) => {
      const compiled = new CompiledRules(lists)
      const allowances = compiled.allowancesOf(address, matched(compiled, names), 0)
      const all = allowances.find(({ ports }) => ports === undefined)
      return allowances.every(({ ports, endMs }, i) => {
        if (ports === undefined) return i === 0
        if (all !== undefined && endMs <= all.endMs) return false
        return !allowances.some(
          (other) =>
            other.ports?.protocol === ports.protocol &&
            other.ports.first === ports.last + 1 &&
            other.endMs === endMs,
        )
      })
    }),
  )
})

t.test('thousands of rules with other ports are read a few times, for all addresses', async (t) => {
  const COUNT = 2000
  let reads = 0
  const rules = Array.from({ length: COUNT }, (_, i): EgressRule => {
    const { ports, ...others } = rule('accept', { names: ['*.a'], ports: [`tcp ${1 + 2 * i}`] })
    return Object.defineProperty(others as EgressRule, 'ports', {
      get() {
        reads++
        return ports
      },
    })
  })
  const compiled = new CompiledRules([DEFAULT_DENY(...rules)])
  const names = matched(compiled, [named('www.a.', 100)])
  t.equal(compiled.allowancesOf(A, names, 0).length, COUNT)
  t.ok(reads <= 20 * COUNT, `${reads} reads`)
  reads = 0
  const next = scanAddress('192.0.2.2')!
  t.equal(compiled.allowancesOf(next, matched(compiled, []), 0).length, 0)
  t.equal(compiled.allowancesOf(next, names, 0).length, COUNT)
  t.equal(reads, 0)
  t.equal(compiled.allowancesOf(next, names, 101).length, 0)
})

t.test('more names never allow less', async () => {
  fc.assert(
    fc.property(lists, address, names, names, (lists, address, names, more) => {
      const compiled = new CompiledRules(lists)
      const before = compiled.allowancesOf(address, matched(compiled, names), 0)
      const after = compiled.allowancesOf(address, matched(compiled, [...names, ...more]), 0)
      for (const connection of connectionsTo(address, lists)) {
        for (let atMs = 0; atMs < 10; atMs++) {
          if (allows(before, connection, atMs) && !allows(after, connection, atMs)) return false
        }
        if (decisionOf(lists, connection, names) === 'deny') continue
        if (decisionOf(lists, connection, [...names, ...more]) === 'deny') return false
      }
      return true
    }),
  )
})

t.test('one selector decides as in an index', async () => {
  const some = selector.map(selectorOf)
  fc.assert(
    fc.property(some, fc.constantFrom('.', ...someNames), (selector, text) => {
      const name = nameOf(text)
      const list = DEFAULT_DENY({ ...rule('accept', {}), names: [selector] })
      const isFound = new CompiledRules([list]).selectorsOf(name).length > 0
      return selectsName(selector, name) === isFound
    }),
  )
})
