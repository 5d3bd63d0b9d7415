import fc from 'fast-check'
import t from 'tap'
import {
  type Address,
  isInNetwork,
  scanAddress,
  scanCidr,
} from '../../../../src/dns/text/address.ts'
import type { Connection } from '../../../../src/egress/rules/connection.ts'
import type { EgressRule, TierList } from '../../../../src/egress/rules/rule.ts'
import { printPeers } from '../../../../src/egress/sinks/nft/address-spans.ts'
import { type Profile, profileOf, rulesDigest } from '../../../../src/egress/sinks/nft/profile.ts'
import { runs } from '../../../support/runs.ts'
import { decisionOf } from '../../decide-connection.ts'
import { peerOf, rule } from '../../egress-rules.ts'

/** What the chains of a profile do with a connection that the sets do not allow. */
function run({ chains, name }: Profile, connection: Connection): 'accept' | 'deny' {
  const enter = (name: string): 'accept' | 'deny' | 'return' => {
    const chain = chains.find((one) => one.name === name)
    if (chain === undefined) throw new Error(`no chain ${name}`)
    for (const text of chain.rules) {
      const [, match = '', verdict = ''] =
        /^(.*?)((?:jump|goto) \S+|accept|return|counter drop)$/.exec(text) ?? []
      if (verdict === '') throw new Error(`not a statement: ${text}`)
      if (!isMatch(match, connection)) continue
      if (verdict === 'counter drop') return 'deny'
      if (verdict === 'accept' || verdict === 'return') return verdict
      const target = verdict.slice(5)
      const result = target === 'client' ? 'return' : enter(target)
      if (result !== 'return' || verdict.startsWith('goto')) return result
    }
    return 'return'
  }
  const result = enter(name)
  if (result === 'return') throw new Error('a profile decides')
  return result
}

function isMatch(match: string, { address, protocol, port }: Connection): boolean {
  const version = address.family === 1 ? 'ipv4' : 'ipv6'
  for (const part of match.matchAll(/(meta nfproto|ip6? daddr|\w+ dport) (\{.*?\}|\S+)/g)) {
    const [, what = '', members = ''] = part
    const texts = members.replace(/[{},]/g, ' ').trim().split(/ +/)
    if (what === 'meta nfproto') {
      if (members !== version) return false
    } else if (what.endsWith('daddr')) {
      if ((what === 'ip daddr') !== (address.family === 1)) return false
      if (!texts.some((text) => isInSpan(text, address))) return false
    } else {
      const isIn = texts.some((text) => {
        const [first, last = first] = text.split('-').map(Number)
        return port >= first! && port <= last!
      })
      if (what !== `${protocol} dport` || !isIn) return false
    }
  }
  return true
}

function isInSpan(text: string, address: Address): boolean {
  const cidr = scanCidr(text)
  if (cidr !== undefined) return isInNetwork(address.bytes, cidr)
  const [first, last = first] = text.split('-').map((one) => Buffer.from(scanAddress(one)!.bytes))
  const bytes = Buffer.from(address.bytes)
  return Buffer.compare(bytes, first!) >= 0 && Buffer.compare(bytes, last!) <= 0
}

const networks = fc.array(
  fc.constantFrom(
    ...['0.0.0.0/0', '10.0.0.0/8', '10.1.0.0/16', '10.1.2.3/32', '10.1.2.2/31', '::/0', 'fd00::/9'],
    ...['2001:db8::/33', '2001:db8::1/128', '10.0.0.0/8 except 10.1.0.0/16 10.2.0.0/17'],
    ...['0.0.0.0/0 except 10.0.0.0/8', '::/0 except 2001:db8::/32 fd00::/8'],
  ),
  { maxLength: 3 },
)
const ports = fc.array(
  fc.constantFrom('tcp 80', 'tcp 70-90', 'tcp 91-95', 'udp 80', 'sctp 0-65535', 'udp 80-65535'),
  { maxLength: 3 },
)
const someRule = fc
  .tuple(
    fc.constantFrom<EgressRule['action']>('accept', 'deny', 'pass'),
    networks,
    fc.option(ports, { nil: undefined }),
  )
  .map(([action, networks, ports]) =>
    rule(action, { networks, ...(ports === undefined ? {} : { ports }) }),
  )
const tier = fc.record({
  rules: fc.array(someRule, { maxLength: 4 }),
  otherwise: fc.constantFrom<'deny' | 'pass'>('deny', 'pass', 'pass'),
})
const someLists = fc.array(fc.array(tier, { maxLength: 3 }), { maxLength: 3 })
const addresses = [
  ...['10.1.2.3', '10.1.2.2', '10.2.0.1', '10.2.200.1', '192.0.2.1'],
  ...['2001:db8::1', '2001:db8:8000::1', 'fd00::1', 'fe80::1'],
].map((text) => scanAddress(text)!)

t.test('the chains decide as the reference does', async () => {
  fc.assert(
    fc.property(someLists, (lists) => {
      const profile = profileOf(lists)
      return addresses.every((address) => {
        const others: Connection[] = [{ address, protocol: 'other', port: 0 }]
        for (const protocol of ['tcp', 'udp', 'sctp'] as const) {
          for (const port of [0, 69, 70, 80, 90, 91, 96, 65_535])
            others.push({ address, protocol, port })
        }
        return others.every((one) => run(profile, one) === decisionOf(lists, one, []))
      })
    }),
    { numRuns: runs(1000) },
  )
})

t.test('equal rules share a profile, and only they do', async (t) => {
  const list = (...networks: readonly string[]): TierList => [
    { rules: networks.map((one) => rule('accept', { networks: [one] })), otherwise: 'deny' },
  ]
  const named = (name: string): TierList => [
    { rules: [rule('accept', { names: [name] })], otherwise: 'deny' },
  ]
  t.strictSame(profileOf([list('10.0.0.0/8')]), profileOf([list('10.0.0.0/9', '10.128.0.0/9')]))
  t.not(profileOf([list('10.0.0.0/8')]).name, profileOf([list('10.0.0.0/9')]).name)
  t.equal(profileOf([named('a')]).name, profileOf([named('b')]).name, 'names are in sets')
  t.not(rulesDigest([named('a')]), rulesDigest([named('b')]))
  t.equal(rulesDigest([named('a')]), rulesDigest([named('a')]))
})

t.test('many networks are one set', async (t) => {
  const rules = Array.from({ length: 5000 }, (_, i) => {
    return rule('deny', { networks: [`10.${i >> 8}.${i & 255}.0/25`], ports: ['tcp 80', 'tcp 81'] })
  })
  const { chains } = profileOf([[{ rules, otherwise: 'pass' }]])
  t.strictSame(
    chains.map((chain) => chain.rules.length),
    [3, 1],
  )
  t.match(chains[1]!.rules[0], /^ip daddr \{ .* \} tcp dport 80-81 counter drop$/)
})

t.test('networks become intervals without common addresses', async (t) => {
  const table: [string[], string[] | 'all'][] = [
    [[], []],
    [['0.0.0.0/0'], 'all'],
    [['0.0.0.0/1', '128.0.0.0/1'], 'all'],
    [['10.0.0.0/8', '10.1.0.0/16'], ['10.0.0.0/8']],
    [['10.0.0.0/31', '10.0.0.2/32'], ['10.0.0.0-10.0.0.2']],
    [['10.0.0.0/30 except 10.0.0.1/32'], ['10.0.0.0', '10.0.0.2/31']],
    [['10.0.0.0/30 except 10.0.0.0/8'], []],
    [['10.0.0.0/30 except 10.0.0.0/32 10.0.0.3/32'], ['10.0.0.1-10.0.0.2']],
    [
      ['255.255.255.255/32', '0.0.0.0/32'],
      ['0.0.0.0', '255.255.255.255'],
    ],
    [['2001:db8::/32'], []],
  ]
  for (const [texts, want] of table)
    t.strictSame(printPeers(texts.map(peerOf), 1), want, texts.join())
  t.strictSame(printPeers(['::/0 except 8000::/1', '10.0.0.0/8'].map(peerOf), 2), ['::/1'])
  t.strictSame(printPeers([peerOf('::/0')], 2), 'all')
})
