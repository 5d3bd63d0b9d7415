import t, { type Test } from 'tap'
import type { Listener } from '../../src/transport/exchange.ts'
import { parsePeerAddress } from '../../src/transport/peer-address.ts'
import { freePort } from '../support/free-port.ts'
import { needsIPv6 } from '../support/ipv6.ts'
import { needs, needsRoot } from '../support/peer.ts'
import type { Client } from './client.ts'
import { Echo, until, Wish } from './echo.ts'
import type { EchoListenOptions } from './echo-threads.ts'
import { type Ends, faults, TRANSPORTS, type Transport } from './transports.ts'
import { xdpTransport } from './xdp-transport.ts'

// Own process: for AF_XDP, it enters a network namespace.

const message = (wish: number, text = ''): Buffer =>
  Buffer.concat([Buffer.from([wish]), Buffer.from(text)])

const texts = (client: Client): string[] => client.received.map((m) => m.subarray(1).toString())

/** A listener with a client; both are gone when the test ends. */
async function open(
  t: Test,
  transport: Transport,
  options: Partial<EchoListenOptions> & { readonly ask?: string } = {},
): Promise<{ listener: Listener; client: Client; echo: Echo }> {
  const host = transport.ipv4.server
  const { ask = host, ...rest } = options
  const echo = rest.handler ?? new Echo()
  const listener = await transport.listen({ host, port: 0, ...rest, handler: echo })
  const client = await transport.connect(listener.port, ask)
  t.teardown(async () => {
    await client.close()
    await listener.close()
  })
  return { listener, client, echo }
}

/** Asks `ends.server` of listeners on `hosts`. */
async function checkWhoAsked(t: Test, transport: Transport, ends: Ends, hosts: readonly string[]) {
  const address = new Uint8Array(16)
  const family = parsePeerAddress(ends.client, address)
  for (const host of hosts) {
    const ask = ends.server
    const { listener, client } = await open(t, transport, { host, ask })
    client.send(message(Wish.Peer))
    await until('the answer is in', () => client.received.length === 1)
    const got = client.received[0]!
    const octets = family === 1 ? 4 : 16
    t.strictSame(
      [...got.subarray(0, octets)],
      [...address.subarray(0, octets)],
      `${ask} on '${host}'`,
    )
    t.strictSame([got[16], got[17]], [family, transport.protocol])
    t.equal(got.readUInt16BE(18), client.port)
    t.equal(got.readUInt16BE(20), listener.port)
  }
}

const CASES: Readonly<Record<string, (t: Test, transport: Transport) => Promise<void>>> = {
  'queries are answered': async (t, transport) => {
    const { listener, client, echo } = await open(t, transport)
    t.ok(listener.port > 0)
    const asked = Array.from({ length: 50 }, (_, i) => `query ${i}`)
    for (const text of asked) client.send(message(Wish.Echo, text))
    await until('all answers are in', () => client.received.length === 50)
    t.strictSame(texts(client).sort(), asked.sort())
    t.equal(echo.inFlight, 0)
  },

  'the exchange says who asked': (t, transport) =>
    checkWhoAsked(t, transport, transport.ipv4, [transport.ipv4.server, '']),

  'silence is silence': async (t, transport) => {
    const { client, echo } = await open(t, transport)
    client.send(message(Wish.Silence))
    client.send(message(Wish.Echo))
    await until('the second is answered', () => client.received.length === 1)
    t.equal(client.received[0]?.[0], Wish.Echo)
    t.equal(echo.inFlight, 0)
  },

  'answers go out in the order in which they come': async (t, transport) => {
    const { client, echo } = await open(t, transport)
    client.send(message(Wish.Wait, '1'))
    client.send(message(Wish.Wait, '2'))
    await until('both wait', () => echo.waiting === 2)
    client.send(message(Wish.Echo, '3'))
    await until('the third is answered', () => client.received.length === 1)
    echo.answerWaiting()
    await until('all are answered', () => client.received.length === 3)
    t.strictSame(texts(client), ['3', '2', '1'])
    await until('all are released', () => echo.inFlight === 0)
  },

  'a new handler takes over while the old one finishes': async (t, transport) => {
    const [old, young] = [new Echo(256, { mark: 1 }), new Echo(256, { mark: 2 })]
    const { client, listener } = await open(t, transport, { handler: old })
    client.send(message(Wish.Wait, 'old'))
    client.send(message(Wish.Mark))
    await until('one waits', () => old.waiting === 1 && client.received.length === 1)
    await transport.use(listener, young)
    client.send(message(Wish.Mark))
    client.send(message(Wish.Wait, 'young'))
    await until('the young one answers', () => client.received.length === 2)
    await until('the young one waits', () => young.waiting === 1)
    t.equal(old.waiting, 1)
    young.answerWaiting()
    old.answerWaiting()
    await until('all is answered', () => client.received.length === 4)
    t.strictSame(texts(client), ['\x01', '\x02', 'young', 'old'])
    await until('both are idle', () => old.inFlight + young.inFlight === 0)
  },

  'close waits for queries in flight': async (t, transport) => {
    const { client, listener, echo } = await open(t, transport)
    client.send(message(Wish.Wait, 'last'))
    await until('it waits', () => echo.waiting === 1)
    let closed = false
    const closing = listener.close().then(() => {
      closed = true
    })
    t.equal(listener.close() instanceof Promise, true, 'closing twice is harmless')
    await new Promise((resolve) => setImmediate(resolve))
    t.equal(closed, false)
    echo.answerWaiting()
    await until('the answer is in', () => client.received.length === 1)
    await client.close()
    await closing
    t.equal(echo.inFlight, 0)
  },

  'close does not wait for ever': async (t, transport) => {
    const { client, listener, echo } = await open(t, transport, { drainMs: 20 })
    client.send(message(Wish.Wait))
    await until('it waits', () => echo.waiting === 1)
    await listener.close()
    echo.answerWaiting()
    await until('the late answer is dropped', () => echo.inFlight === 0)
    t.equal(client.received.length, 0)
  },

  'a port in use is an error, and can be had afterwards': async (t, transport) => {
    const { server: host } = transport.ipv4
    const options = { host, port: await freePort(), handler: new Echo() }
    const listener = await transport.listen(options)
    await t.rejects(transport.listen(options), { code: 'EADDRINUSE' })
    await listener.close()
    await (await transport.listen(options)).close()
  },
}

function askByIPv6(t: Test, transport: Transport): Promise<void> {
  return checkWhoAsked(t, transport, transport.ipv6, [''])
}

for (const transport of TRANSPORTS) {
  for (const [name, run] of Object.entries(CASES)) {
    t.test(`${transport.name}: ${name}`, (t) => run(t, transport))
  }
  t.test(`${transport.name}: the exchange says who asked, by IPv6`, needsIPv6(), (t) =>
    askByIPv6(t, transport),
  )
}

for (const mode of ['generic', 'native'] as const) {
  t.test(`xdp ${mode}`, { ...needsRoot(), ...needs('ip') }, async (t) => {
    const transport = await xdpTransport(t, mode)
    const cases = Object.entries({ ...CASES, 'IPv6: the exchange says who asked': askByIPv6 })
    for (const [name, run] of cases) {
      await t.test(name, async (t) => {
        const before = transport.socketDatagrams()
        await run(t, transport)
        t.equal(transport.socketDatagrams(), before, 'no query passed a socket')
      })
    }
    t.strictSame(transport.faults, [])
  })
}

t.test('threads had nothing to complain of', async (t) => t.strictSame(faults(), []))
