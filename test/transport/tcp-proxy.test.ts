import t, { type Test } from 'tap'
import { printAddress } from '../../src/dns/text/address.ts'
import { ProxyAction } from '../../src/transport/proxy/rules.ts'
import { listenTcp, type TcpListener } from '../../src/transport/tcp.ts'
import type { TcpLimits } from '../../src/transport/tcp-limits.ts'
import { proxyHeader } from '../support/proxy-header.ts'
import { frame, TcpClient } from './client.ts'
import { Echo, until, Wish } from './echo.ts'

const FIRST = Buffer.from('PROXY TCP4 192.0.2.7 127.0.0.1 4711 53\r\n')
const WHO = Buffer.from([Wish.Peer])
/** Longer than any test. */
const LONG_MS = 600_000

/** A listener for which 127.0.0.1 is a proxy; `others`: what happens to the headers of other peers. */
async function start(
  t: Test,
  limits: Partial<TcpLimits> = {},
  others: ProxyAction = ProxyAction.Ignore,
): Promise<{ listener: TcpListener; faults: number[] }> {
  const faults: number[] = []
  const listener = await listenTcp({
    host: '127.0.0.1',
    port: 0,
    handler: new Echo(),
    limits: { messageOctetsMin: 1, readMs: LONG_MS, idleMs: LONG_MS, ...limits },
    proxy: {
      server: 'dns://:53',
      rules: {
        actionFor: (address) => (address[3] === 1 ? ProxyAction.Use : others),
        trackingMs: 0,
        sessionsMax: 1,
        keepsTlvs: false,
        noteFault: (_, fault) => faults.push(fault),
      },
    },
  })
  t.teardown(() => listener.close())
  return { listener, faults }
}

async function connect(t: Test, { port }: TcpListener, from = '127.0.0.1'): Promise<TcpClient> {
  const client = await TcpClient.connect(port, '127.0.0.1', from)
  t.teardown(() => client.close())
  return client
}

/** The client that the server sees: that of its last reply. */
const seen = ({ received }: TcpClient): string => {
  const reply = received.at(-1)!
  return `${printAddress(reply, reply[16] === 1 ? 1 : 2)} ${reply.readUInt16BE(18)}`
}

t.test('the client of a header', async (t) => {
  const { listener, faults } = await start(t)
  for (const [what, header, want] of [
    ['version 1', FIRST, '192.0.2.7 4711'],
    ['version 2', proxyHeader(), '192.0.2.7 4711'],
    ['IPv6', proxyHeader({ source: '2001:db8::7', kind: 0x21 }), '2001:db8::7 4711'],
    ['TLVs', proxyHeader({ tlvs: new Uint8Array(2020) }), '192.0.2.7 4711'],
    ['none', Buffer.alloc(0), undefined],
    ['LOCAL', proxyHeader({ command: 0x20 }), undefined],
    ['UNKNOWN', Buffer.from('PROXY UNKNOWN\r\n'), undefined],
    ['UNIX', proxyHeader({ kind: 0x31, addresses: Buffer.alloc(216) }), undefined],
  ] as const) {
    for (const piece of [1, 5000]) {
      const client = await connect(t, listener)
      const octets = Buffer.concat([header, frame(WHO), frame(WHO)])
      for (let at = 0; at < octets.length; at += piece) {
        client.socket.write(octets.subarray(at, at + piece))
        if (at < 60) await new Promise((resolve) => setImmediate(resolve))
      }
      await until('both are answered', () => client.received.length === 2)
      t.equal(seen(client), want ?? `127.0.0.1 ${client.port}`, what)
      // Later octets are messages, whatever they look like.
      client.send(WHO)
      await until('it is answered', () => client.received.length === 3)
      t.equal(seen(client), want ?? `127.0.0.1 ${client.port}`, what)
      await client.close()
    }
  }
  t.strictSame(faults, [])
})

t.test('connections that are cut', async (t) => {
  const { Ignore, Reject, Skip } = ProxyAction
  for (const [what, others, from, octets, fault] of [
    ['a line without an end', Ignore, 1, Buffer.from(`PROXY ${'f'.repeat(200)}`), 0],
    ['LF alone', Ignore, 1, Buffer.from('PROXY UNKNOWN\n'), 0],
    ['a header over 2 KiB', Ignore, 1, proxyHeader({ tlvs: new Uint8Array(2021) }), 0],
    ['a length that lies', Ignore, 1, proxyHeader({ length: 11 }), 0],
    ['a malformed header of a stranger', Ignore, 2, Buffer.from('PROXY x\r\n'), 0],
    ['reject', Reject, 2, proxyHeader(), 1],
    ['skip', Skip, 2, FIRST, undefined],
    ['two headers', Ignore, 1, Buffer.concat([FIRST, FIRST]), undefined],
  ] as const) {
    const { listener, faults } = await start(t, {}, others)
    const client = await connect(t, listener, `127.0.0.${from}`)
    client.socket.write(octets)
    await until('it is cut', () => client.ended)
    t.equal(client.received.length, 0, what)
    t.equal(listener.counters.malformed, 1, what)
    t.strictSame(faults, fault === undefined ? [] : [fault], what)
  }
})

t.test('the header of a stranger is ignored', async (t) => {
  const { listener } = await start(t)
  for (const header of [FIRST, proxyHeader()]) {
    const client = await connect(t, listener, '127.0.0.2')
    client.socket.write(Buffer.concat([header, frame(WHO)]))
    await until('it is answered', () => client.received.length === 1)
    t.equal(seen(client), `127.0.0.2 ${client.port}`)
  }
})

t.test('a header that never ends is bounded by the time to read', async (t) => {
  const { listener, faults } = await start(t, { readMs: 50 })
  const client = await connect(t, listener)
  // Each octet comes in time, but the header does not.
  const sending = setInterval(() => client.socket.write('x'), 10)
  client.socket.write(proxyHeader({ length: 2000 }))
  await until('it is cut', () => client.ended)
  clearInterval(sending)
  t.equal(listener.counters.timedOut, 1)
  t.strictSame(faults, [])
})

t.test('a connection that ends within its header', async (t) => {
  const { listener } = await start(t)
  const client = await connect(t, listener)
  client.socket.end(proxyHeader().subarray(0, 20))
  await until('it has ended', () => listener.connections === 0)
  t.equal(client.received.length, 0)
})

t.test('limits hold for the client, not for the proxy', async (t) => {
  const { listener } = await start(t, { connectionsPerAddressMax: 2, sparedMs: LONG_MS })
  const open = async (source: string): Promise<TcpClient> => {
    const client = await connect(t, listener)
    client.socket.write(Buffer.concat([proxyHeader({ source }), frame(WHO)]))
    await until('an answer or an end', () => client.received.length === 1 || client.ended)
    return client
  }
  const clients: TcpClient[] = []
  for (let i = 1; i <= 5; i++) clients.push(await open(`192.0.2.${i}`))
  t.strictSame(
    clients.map(({ ended }) => ended),
    Array(5).fill(false),
  )
  const others = [await open('192.0.2.9'), await open('192.0.2.9'), await open('192.0.2.9')]
  await until('one of them is refused', () => listener.counters.refused === 1)
  await until('it has ended', () => others.some(({ ended }) => ended))
  t.equal(others.filter(({ ended }) => ended).length, 1)
  t.equal(listener.connections, 7)
  t.equal(listener.counters.open, 7)
})
