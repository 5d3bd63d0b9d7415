import t, { type Test } from 'tap'
import { printAddress } from '../../../src/dns/text/address.ts'
import type { StreamProxy } from '../../../src/transport/connection-ends.ts'
import { DescriptorSocket } from '../../../src/transport/handover/descriptor-socket.ts'
import { Handover } from '../../../src/transport/handover/handover.ts'
import { ReusePortBinder } from '../../../src/transport/handover/reuse-port-binder.ts'
import { ProxyAction } from '../../../src/transport/proxy/rules.ts'
import { listenTcp, type TcpListener } from '../../../src/transport/tcp.ts'
import type { TcpLimits } from '../../../src/transport/tcp-limits.ts'
import { loadLibc } from '../../../src/transport/udp/batch/libc.ts'
import { proxyHeader } from '../../support/proxy-header.ts'
import { frame, TcpClient } from '../client.ts'
import { Echo, until, Wish } from '../echo.ts'

// Long: it starts many processes.

const libc = loadLibc()
const MARK = Buffer.of(Wish.Mark, 0)
const ECHO = Buffer.of(Wish.Echo, 0)

/** Every peer is a proxy. */
const PROXY: StreamProxy = {
  server: 'dns://:53',
  rules: {
    actionFor: () => ProxyAction.Use,
    trackingMs: 0,
    sessionsMax: 1,
    keepsTlvs: true,
    noteFault: () => {},
  },
}

interface Process {
  readonly echo: Echo
  readonly listener: TcpListener
}

/** A listener as one process has it, which answers `Mark` with its number; above 1 it takes over from the one before. */
async function listen(
  t: Test,
  mark: number,
  port: number,
  limits: Partial<TcpLimits> = {},
  proxy?: StreamProxy,
): Promise<Process> {
  const echo = new Echo(256, { mark })
  const listener = await listenTcp({
    host: '127.0.0.1',
    port,
    handler: echo,
    proxy,
    reusePortBinder: new ReusePortBinder(libc, mark > 1, () => {}),
    limits: { messageOctetsMin: 1, readMs: 60_000, idleMs: 60_000, drainMs: 60_000, ...limits },
  })
  t.teardown(() => listener.close())
  return { echo, listener }
}

/** Asks which process answers; undefined if the connection ends. */
async function ask(client: TcpClient): Promise<number | undefined> {
  const marks = () => client.received.filter((reply) => reply[0] === Wish.Mark)
  const before = marks().length
  client.send(MARK)
  await until('an answer', () => marks().length > before || client.ended)
  return marks()[before]?.[1]
}

const long = frame(Buffer.concat([ECHO, Buffer.alloc(16_000)]))

/** What the client has sent when the old process ends, and what it sends afterwards. */
const connections: Record<string, readonly [before: readonly Buffer[], after: readonly Buffer[]]> =
  {
    'one that has asked nothing': [[], []],
    'one whose queries are all answered': [[frame(ECHO), frame(ECHO)], []],
    'the first octet of a length': [
      [frame(ECHO), frame(MARK).subarray(0, 1)],
      [frame(MARK).subarray(1)],
    ],
    'a half of a message': [[frame(ECHO), frame(ECHO).subarray(0, 3)], [frame(ECHO).subarray(3)]],
    'a half of a long message': [[frame(ECHO), long.subarray(0, 12_000)], [long.subarray(12_000)]],
    'many queries at once': [Array.from({ length: 1000 }, () => frame(ECHO)), []],
  }

for (const [name, [before, after]] of Object.entries(connections)) {
  t.test(`a connection moves: ${name}`, async (t) => {
    const old = await listen(t, 1, 0)
    const client = await TcpClient.connect(old.listener.port)
    await until('it is accepted', () => old.listener.connections === 1)
    const next = await listen(t, 2, old.listener.port)
    client.socket.write(Buffer.concat(before))
    if (before.length > 0) await until('an answer', () => client.received.length > 0)
    await old.listener.close()
    await until('the new process has it', () => next.listener.connections === 1)
    client.socket.write(Buffer.concat(after))
    t.equal(await ask(client), 2, 'the new process answers')
    // The answer of `ask` may be that of `after`.
    const sent = [...before, ...after, frame(MARK)].reduce((sum, part) => sum + part.length, 0)
    const answered = () => client.received.reduce((sum, reply) => sum + 2 + reply.length, 0)
    await until('all messages are answered', () => answered() >= sent || client.ended)
    t.equal(answered(), sent)
    t.equal(client.ended, false)
    await client.close()
  })
}

t.test('a connection moves with the client of its PROXY header', async (t) => {
  const tlvs = Buffer.from([1, 0, 1, 7])
  const seen = async (client: TcpClient): Promise<string> => {
    const before = client.received.length
    client.send(Buffer.of(Wish.Peer))
    await until('an answer', () => client.received.length > before || client.ended)
    const reply = client.received.at(-1)!
    return `${printAddress(reply, reply[16] === 1 ? 1 : 2)} ${reply.readUInt16BE(18)}`
  }
  for (const [what, before, after, want] of [
    ['whole', proxyHeader({ source: '2001:db8::7', tlvs }), '', '2001:db8::7 4711'],
    ['half', proxyHeader().subarray(0, 20), proxyHeader().subarray(20), '192.0.2.7 4711'],
  ] as const) {
    const old = await listen(t, 1, 0, {}, PROXY)
    const client = await TcpClient.connect(old.listener.port)
    await until('it is accepted', () => old.listener.connections === 1)
    const next = await listen(t, 2, old.listener.port, {}, PROXY)
    client.socket.write(before)
    if (what === 'whole') t.equal(await seen(client), want, what)
    await old.listener.close()
    await until('the new process has it', () => next.listener.connections === 1)
    client.socket.write(after)
    t.equal(await seen(client), want, what)
    t.equal(await ask(client), 2, 'the new process answers')
    await client.close()
  }
})

t.test('queries in flight are answered first, and no later ones are read', async (t) => {
  const old = await listen(t, 1, 0)
  const client = await TcpClient.connect(old.listener.port)
  client.send(Buffer.of(Wish.Wait))
  await until('it waits', () => old.echo.waiting === 1)
  const next = await listen(t, 2, old.listener.port)
  const closing = old.listener.close()
  const idle = await TcpClient.connect(old.listener.port)
  t.equal(await ask(idle), 2)
  client.send(MARK)
  old.echo.answerWaiting()
  await closing
  await until('both are answered', () => client.received.length === 2)
  t.strictSame([...client.received], [Buffer.of(Wish.Wait), Buffer.of(Wish.Mark, 2)])
  t.equal(next.listener.connections, 2)
  await Promise.all([client.close(), idle.close()])
})

t.test('clients that never pause lose nothing over many processes', async (t) => {
  let running = await listen(t, 1, 0, { connectionsPerAddressMax: 1000 })
  const { port } = running.listener
  const clients = await Promise.all(Array.from({ length: 300 }, () => TcpClient.connect(port)))
  let sent = 0
  let isOver = false
  for (const [i, client] of clients.entries()) {
    const send = (): void => {
      if (isOver) return
      sent++
      // The frame in two writes: the process ends between them, too.
      client.socket.write(frame(ECHO).subarray(0, 1))
      client.socket.write(frame(ECHO).subarray(1))
    }
    client.socket.on('data', (chunk: Buffer) => {
      for (let at = 0; at < chunk.length; at += frame(ECHO).length) send()
    })
    for (let window = 0; window <= i % 3; window++) send()
  }
  for (let mark = 2; mark <= 6; mark++) {
    const old = running
    running = await listen(t, mark, port, { connectionsPerAddressMax: 1000 })
    await old.listener.close()
    const goal = sent + 3000
    await until('more answers', () => sent > goal || clients.some((client) => client.ended))
  }
  isOver = true
  const received = () => clients.reduce((sum, client) => sum + client.received.length, 0)
  await until('the last answers', () => received() === sent || clients.some(({ ended }) => ended))
  t.equal(received(), sent)
  t.notOk(
    clients.some((client) => client.ended),
    'no connection was ended',
  )
  t.equal(running.listener.connections, clients.length)
  await Promise.all(clients.map((client) => client.close()))
})

t.test('connections that wait to be accepted are not reset', async (t) => {
  const { listener } = await listen(t, 1, 0)
  const connecting = Array.from({ length: 50 }, () => TcpClient.connect(listener.port))
  // By now the kernel has them all, and the listener none.
  await new Promise((resolve) => process.nextTick(resolve))
  const next = await listen(t, 2, listener.port)
  const [clients] = await Promise.all([Promise.all(connecting), listener.close()])
  for (const client of clients) t.equal(await ask(client), 2)
  t.equal(next.listener.connections, clients.length)
  await Promise.all(clients.map((client) => client.close()))
})

t.test('the limit of queries goes on', async (t) => {
  const limits = { queriesMax: 3 }
  const old = await listen(t, 1, 0, limits)
  const client = await TcpClient.connect(old.listener.port)
  t.equal(await ask(client), 1)
  t.equal(await ask(client), 1)
  await listen(t, 2, old.listener.port, limits)
  await old.listener.close()
  t.equal(await ask(client), 2)
  await until('the third was the last', () => client.ended)
  await client.close()
})

t.test('the last process that still runs gets the connections', async (t) => {
  const old = await listen(t, 1, 0)
  const { port } = old.listener
  const client = await TcpClient.connect(port)
  t.equal(await ask(client), 1)
  await listen(t, 2, port)
  await listen(t, 3, port)
  const ended = await listen(t, 4, port)
  await ended.listener.close()
  await old.listener.close()
  t.equal(await ask(client), 3)
  await client.close()
})

t.test(
  'without another process the client is asked to leave, and the connection ends',
  async (t) => {
    const old = await listen(t, 1, 0, { drainMs: 50, quietMs: 0 })
    const { port } = old.listener
    const client = await TcpClient.connect(port)
    t.equal(await ask(client), 1)
    const ended = await listen(t, 2, port)
    await ended.listener.close()
    const closing = old.listener.close()
    await until('the server ends', () => client.ended)
    client.socket.end()
    await closing
  },
)

t.test('a process that does not receive holds its predecessor up for a while only', async (t) => {
  const old = await listen(t, 1, 0, { drainMs: 50, quietMs: 0, connectionsPerAddressMax: 1000 })
  const { port } = old.listener
  const clients = await Promise.all(Array.from({ length: 30 }, () => TcpClient.connect(port)))
  await until('all are accepted', () => old.listener.connections === clients.length)
  // As `Handover` connects, and then nothing.
  const hung = DescriptorSocket.connect(libc, `sextant/tcp/127.0.0.1#${port}`)
  t.ok(hung)
  await old.listener.close()
  hung?.close()
  await until('all are ended', () => clients.every((client) => client.ended))
  await Promise.all(clients.map((client) => client.close()))
})

t.test('a process that is killed leaves its name to the next', async (t) => {
  const [address, name] = ['test 1', 'sextant/tcp/test 1']
  const killed = DescriptorSocket.listen(libc, name)
  const next = new Handover(libc, address, true, () => {}, t.fail)
  t.teardown(() => next.close())
  t.equal(DescriptorSocket.listen(libc, name), undefined, 'the name is in use')
  for (const channel of killed!.accept()) channel.close()
  killed!.close()
  await until('the next one listens', () => {
    const connected = DescriptorSocket.connect(libc, name)
    connected?.close()
    return connected !== undefined
  })
})

t.test('a full queue of the name is logged', async (t) => {
  const warnings: string[] = []
  const begin = (takesOver: boolean): Handover =>
    new Handover(
      libc,
      '127.0.0.1#1',
      takesOver,
      () => {},
      (text) => void warnings.push(text),
    )
  const old = begin(false)
  const flood: DescriptorSocket[] = []
  for (;;) {
    const socket = DescriptorSocket.connect(libc, 'sextant/tcp/127.0.0.1#1')
    if (socket === undefined) break
    flood.push(socket)
  }
  t.strictSame(warnings, [])
  const next = begin(true)
  t.match(warnings, [/^TCP connections of 127\.0\.0\.1#1 are not handed over/])
  for (const one of [...flood, old, next]) one.close()
})

t.test('a message that is no hand-over is ignored, and its descriptor closed', async (t) => {
  const [address, name] = ['test 2', 'sextant/tcp/test 2']
  const listener = DescriptorSocket.listen(libc, name)!
  t.teardown(() => listener.close())
  const adopted: number[] = []
  const next = new Handover(
    libc,
    address,
    true,
    (socket, { queries }) => {
      adopted.push(queries)
      socket.destroy()
    },
    t.fail,
  )
  t.teardown(() => next.close())
  const [channel] = listener.accept()
  const file = libc.eventfd(0, 0)
  for (const message of [[0], [9, 9, 9], [2], [2, 0, 0], [2, 0, 0, 0, 1]]) {
    t.ok(channel!.send(Uint8Array.from(message), file), `${message}`)
  }
  const { listener: tcp } = await listen(t, 1, 0)
  const client = await TcpClient.connect(tcp.port)
  const fd = libc.socket(2, 1, 0)
  t.ok(channel!.send(Uint8Array.of(2, 0, 0, 1, 2), fd))
  libc.close(fd)
  libc.close(file)
  await until('the socket is adopted', () => adopted.length > 0)
  t.strictSame(adopted, [0x102])
  channel!.close()
  await client.close()
})

const isRoot = process.geteuid?.() === 0

t.test(
  'processes of another user are refused',
  { skip: isRoot ? false : 'takes root' },
  async (t) => {
    const as = <T>(user: number, act: () => T): T => {
      process.seteuid!(user)
      try {
        return act()
      } finally {
        process.seteuid!(0)
      }
    }
    const name = 'sextant/tcp/test 3'
    for (const [ours, theirs, works] of [
      [0, 0, true],
      [0, 65_534, false],
      [65_534, 0, false],
    ] as const) {
      const listener = as(theirs, () => DescriptorSocket.listen(libc, name)!)
      const connected = as(ours, () => DescriptorSocket.connect(libc, name))
      t.equal(connected !== undefined, works, `user ${ours} connects to user ${theirs}`)
      for (const channel of as(theirs, () => listener.accept())) channel.close()
      listener.close()
      connected?.close()
      const own = as(ours, () => DescriptorSocket.listen(libc, name)!)
      const other = as(theirs, () => DescriptorSocket.connect(libc, name))
      const accepted = as(ours, () => own.accept())
      t.equal(accepted.length, works ? 1 : 0, `user ${ours} accepts user ${theirs}`)
      for (const socket of [own, other, ...accepted]) socket?.close()
    }
  },
)
