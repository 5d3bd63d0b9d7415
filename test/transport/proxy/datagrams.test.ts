import fc from 'fast-check'
import t from 'tap'
import { Query } from '../../../src/dns/message/query.ts'
import { type AddressFamily, printAddress, scanAddress } from '../../../src/dns/text/address.ts'
import { ProxiedDatagrams } from '../../../src/transport/proxy/datagrams.ts'
import { ProxyHeader } from '../../../src/transport/proxy/header.ts'
import { ProxyAction, type ProxyRules } from '../../../src/transport/proxy/rules.ts'
import { ProxySessions } from '../../../src/transport/proxy/sessions.ts'
import { arbitraryOctets } from '../../support/arbitrary.ts'
import { proxyHeader } from '../../support/proxy-header.ts'

const { Use, Ignore, Reject, Skip } = ProxyAction
const PROXY = '10.0.0.1'

interface Given extends Partial<ProxyRules> {
  readonly nowMs?: () => number
}

/** Datagrams of an address where 10.0.0.0/8 are proxies; `others`: what happens to the headers of other peers. */
function datagrams(others: ProxyAction, given: Given = {}) {
  const faults: string[] = []
  const { nowMs, ...rules } = given
  const opened = new ProxiedDatagrams(
    'dns://:53',
    {
      actionFor: (address) => (address[0] === 10 ? Use : others),
      trackingMs: 0,
      sessionsMax: 3,
      keepsTlvs: false,
      noteFault: (_, fault, address, family) => {
        faults.push(`${printAddress(address, family as AddressFamily)} ${fault}`)
      },
      ...rules,
    },
    nowMs,
  )
  return { opened, faults }
}

function queryOf(peer: string, port = 1000): Query {
  const query = new Query()
  const { family, bytes } = scanAddress(peer)!
  query.peerFamily = family
  query.peerAddress.set(bytes)
  query.peerPort = port
  query.proxyTlvsOctets = 99
  return query
}

/** What becomes of a datagram: `drop`, or its client and its message. */
function open(opened: ProxiedDatagrams, packet: Uint8Array, peer: string, port?: number): string {
  const query = queryOf(peer, port)
  const start = opened.open(query, packet, 0, packet.length)
  if (start === -1) return 'drop'
  const { peerAddress, peerFamily, peerPort, proxyTlvsAt, proxyTlvsOctets } = query
  const tlvs = query.proxyTlvs.subarray(proxyTlvsAt, proxyTlvsAt + proxyTlvsOctets)
  const client = `${printAddress(peerAddress, peerFamily as AddressFamily)} ${peerPort}`
  return `${client} ${Buffer.from(packet.subarray(start))}${tlvs.length === 0 ? '' : ` ${Buffer.from(tlvs)}`}`
}

const BODY = Buffer.from('message')
const wrapped = Buffer.concat([proxyHeader(), BODY])
const cut = proxyHeader().subarray(0, 27)
const first = Buffer.from('PROXY TCP4 192.0.2.7 192.0.2.53 4711 53\r\nmessage')
const local = Buffer.concat([
  proxyHeader({ command: 0x20, kind: 0, addresses: Buffer.alloc(0) }),
  BODY,
])
const text = wrapped.toString()

t.test('what the rules do with a header', async (t) => {
  for (const [what, others, peer, packet, want, faults] of [
    ['a proxy', Ignore, PROXY, wrapped, '192.0.2.7 4711 message', []],
    ['a proxy without a header', Ignore, PROXY, BODY, `${PROXY} 1000 message`, []],
    ['a health check of a proxy', Ignore, PROXY, local, `${PROXY} 1000 message`, []],
    ['a cut header', Ignore, PROXY, cut, 'drop', [`${PROXY} 0`]],
    ['version 1', Ignore, PROXY, first, 'drop', [`${PROXY} 0`]],
    ['nothing', Ignore, PROXY, Buffer.alloc(0), `${PROXY} 1000 `, []],
    ['a header only', Ignore, PROXY, proxyHeader(), '192.0.2.7 4711 ', []],
    ['ignore', Ignore, '192.0.2.66', wrapped, '192.0.2.66 1000 message', []],
    ['ignore, cut', Ignore, '192.0.2.66', cut, 'drop', ['192.0.2.66 0']],
    ['reject', Reject, '2001:db8::66', wrapped, 'drop', ['2001:db8::66 1']],
    ['reject, no header', Reject, '192.0.2.66', BODY, '192.0.2.66 1000 message', []],
    ['skip', Skip, '192.0.2.66', wrapped, `192.0.2.66 1000 ${text}`, []],
    ['skip, cut', Skip, '192.0.2.66', cut, `192.0.2.66 1000 ${cut}`, []],
    ['use', Use, '192.0.2.66', wrapped, '192.0.2.7 4711 message', []],
  ] as const) {
    const rules = datagrams(others)
    t.equal(open(rules.opened, packet, peer), want, what)
    t.strictSame(rules.faults, faults, what)
  }
})

t.test('TLVs are kept only on request', async (t) => {
  const packet = Buffer.concat([proxyHeader({ tlvs: Buffer.from('tlvs') }), BODY])
  t.equal(open(datagrams(Ignore).opened, packet, PROXY), '192.0.2.7 4711 message')
  const { opened } = datagrams(Ignore, { keepsTlvs: true })
  t.equal(open(opened, packet, PROXY), '192.0.2.7 4711 message tlvs')
  t.equal(open(opened, wrapped, PROXY), '192.0.2.7 4711 message')
})

t.test('a port of a proxy is tracked', async (t) => {
  let nowMs = 0
  const given = { trackingMs: 100, keepsTlvs: true, nowMs: () => nowMs }
  const { opened } = datagrams(Ignore, given)
  const own = `${PROXY} 1000 message`
  const begin = proxyHeader({ tlvs: Buffer.from('tlvs') })
  t.equal(open(opened, BODY, PROXY), own)
  t.equal(open(opened, begin, PROXY), 'drop', 'a header without a message begins a session')
  t.equal(open(opened, BODY, PROXY), '192.0.2.7 4711 message tlvs')
  t.equal(open(opened, BODY, PROXY, 1001), `${PROXY} 1001 message`, 'another port')
  t.equal(open(opened, BODY, '10.0.0.2'), '10.0.0.2 1000 message', 'another proxy')
  t.equal(open(opened, local, PROXY), own, 'a health check keeps it')
  for (let i = 0; i < 3; i++) {
    nowMs += 100
    t.equal(open(opened, BODY, PROXY), '192.0.2.7 4711 message tlvs', 'each datagram extends it')
  }
  nowMs += 101
  t.equal(open(opened, BODY, PROXY), own, 'it ended')
  const other = Buffer.concat([proxyHeader({ source: '2001:db8::9', port: 9 }), BODY])
  t.equal(open(opened, other, PROXY), '2001:db8::9 9 message')
  t.equal(open(opened, BODY, PROXY), '2001:db8::9 9 message')
  // Three sessions are the limit.
  for (const port of [1, 2]) open(opened, wrapped, PROXY, port)
  open(opened, BODY, PROXY)
  open(opened, wrapped, PROXY, 3)
  t.equal(open(opened, BODY, PROXY, 1), `${PROXY} 1 message`, 'the oldest is replaced')
  t.equal(open(opened, BODY, PROXY), '2001:db8::9 9 message')
})

t.test('sessions of strangers', async (t) => {
  const { opened } = datagrams(Ignore, { trackingMs: 100 })
  t.equal(open(opened, wrapped, '192.0.2.66'), '192.0.2.66 1000 message')
  t.equal(open(opened, BODY, '192.0.2.66'), '192.0.2.66 1000 message')
})

t.test('sessions behave as a map with a limit', async () => {
  const ports = fc.array(fc.tuple(fc.nat(9), fc.boolean()), { maxLength: 200 })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 8 }), ports, (max, steps) => {
      const sessions = new ProxySessions(1000, max, () => 0)
      const model = new Map<number, number>()
      const header = new ProxyHeader()
      header.family = 1
      for (const [i, [port, stores]] of steps.entries()) {
        const query = queryOf(PROXY, port)
        if (stores) {
          header.port = i
          sessions.store(query, header, BODY, false)
          model.delete(port)
          model.set(port, i)
          if (model.size > max) model.delete(model.keys().next().value!)
          continue
        }
        const want = model.get(port)
        if (want !== undefined) {
          model.delete(port)
          model.set(port, want)
        }
        const isFound = sessions.describe(query)
        if (isFound !== (want !== undefined) || (isFound && query.peerPort !== want)) return false
      }
      return sessions.size === model.size
    }),
  )
})

t.test('no octets of a stranger change its address', async () => {
  const start = fc.constantFrom(
    Buffer.alloc(0),
    wrapped.subarray(0, 12),
    wrapped.subarray(0, 14),
    wrapped,
    local,
    first,
  )
  fc.assert(
    fc.property(
      start,
      arbitraryOctets(100),
      fc.constantFrom(Ignore, Reject, Skip),
      (a, b, rule) => {
        const { opened } = datagrams(rule, { trackingMs: 100, keepsTlvs: true })
        // Proxies may have sessions of their own.
        open(opened, wrapped, PROXY)
        const packet = Buffer.concat([a, b])
        const query = queryOf('192.0.2.66')
        const at = opened.open(query, packet, 0, packet.length)
        const isSame =
          query.peerPort === 1000 && printAddress(query.peerAddress, 1) === '192.0.2.66'
        return isSame && query.proxyTlvsOctets === 0 && at >= -1 && at <= packet.length
      },
    ),
    { numRuns: 2000 },
  )
})

t.test('sessions keep TLVs only on request', async (t) => {
  const header = new ProxyHeader()
  const packet = proxyHeader({ tlvs: Buffer.from('tlvs') })
  header.read(packet, 0, packet.length)
  for (const keeps of [false, true]) {
    const sessions = new ProxySessions(1000, 2, () => 0)
    sessions.store(queryOf(PROXY), header, packet, keeps)
    const query = queryOf(PROXY)
    t.ok(sessions.describe(query))
    t.equal(query.proxyTlvs.length, keeps ? 4 : 0)
  }
})

t.test('addresses that were chosen for one bucket of a hash without a secret', async (t) => {
  const factor = 0x9e3779b1
  // 1 / factor, modulo 2^32.
  let inverse = factor
  for (let i = 0; i < 5; i++) inverse = Math.imul(inverse, 2 - Math.imul(factor, inverse))
  const query = queryOf('2001:db8::1')
  let hash = query.peerPort | (query.peerFamily << 16)
  for (const word of query.peerWords.subarray(0, 3)) {
    hash = Math.imul(hash ^ word, factor) ^ (hash >>> 15)
  }
  const max = 65_536
  const sessions = new ProxySessions(1000, max, () => 0)
  const header = new ProxyHeader()
  const start = process.cpuUsage()
  for (let i = 0; i < max; i++) {
    query.peerWords[3] = Math.imul(((i << 16) | i) ^ (hash >>> 15), inverse) ^ hash
    sessions.store(query, header, BODY, false)
  }
  const { user } = process.cpuUsage(start)
  t.equal(sessions.size, max)
  t.ok(user < 2_000_000, `${user} microseconds`)
})
