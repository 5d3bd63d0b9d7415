import t, { type Test } from 'tap'
import { Query } from '../../../../../src/dns/message/query.ts'
import { type Libc, loadLibc } from '../../../../../src/transport/udp/batch/libc.ts'
import { BatchSocket } from '../../../../../src/transport/udp/batch/socket.ts'
import { type Client, udpClient } from '../../../client.ts'
import { until } from '../../../echo.ts'

/*
 * Replies in groups through the kernel of this machine, to sockets that know nothing of it.
 */

const libc = loadLibc()
const EIO = 5
const PER_CLIENT = 12

/** A socket that groups, the number of messages that it sent, and the errors for which it stopped grouping. */
function open(t: Test, host: string, faults: Partial<Libc> = {}) {
  const seen = { messages: 0, refusals: [] as number[] }
  const calls: Libc = { ...libc, ...faults }
  const grouped: Libc = {
    ...calls,
    sendmmsg: (fd, headers, count, flags) => {
      const sent = calls.sendmmsg(fd, headers, count, flags)
      seen.messages += Math.max(sent, 0)
      return sent
    },
  }
  const grouping = { onRefused: (errno: number) => void seen.refusals.push(errno) }
  const socket = new BatchSocket(grouped, { host, port: 0 }, grouping)
  t.teardown(() => socket.close())
  return { socket, seen }
}

/** Each client asks PER_CLIENT times, and all of a batch is answered at once: with what was asked and one octet more. */
async function exchange(socket: BatchSocket, clients: readonly Client[]): Promise<void> {
  const query = new Query()
  const want = clients.length * PER_CLIENT
  const kept: Uint8Array[] = []
  for (let i = 0; i < PER_CLIENT; i++) {
    for (const [number, client] of clients.entries()) client.send(Buffer.from([number, i]))
  }
  await until('all queries are in', () => {
    const count = Math.max(socket.receive(), 0)
    for (let slot = 0; slot < count; slot++) kept.push(socket.copyUnit(slot, query))
    return kept.length === want
  })
  for (const copy of kept) {
    const unit = socket.takeUnit(copy, query)
    const [number, i] = query.packet
    socket.reply(unit, Uint8Array.of(number!, i!, 99), 3)
    socket.giveBack(unit)
  }
  t.equal(socket.flush(), true)
  await until('all are answered', () =>
    clients.every(({ received }) => received.length >= PER_CLIENT),
  )
}

/**
 * A client for each address. Their ports are looked for in different entries of the tables of `Grouping`: of two in one, each
 * reply may go by itself, and the system gives out such ports once in a hundred times.
 */
async function connectApart(port: number, asked: readonly string[]): Promise<readonly Client[]> {
  for (;;) {
    const clients = await Promise.all(asked.map((address) => udpClient(port, address)))
    const entries = new Set(clients.map((client) => (client.port ^ (client.port >> 8)) & 0xff))
    if (entries.size === clients.length) return clients
    for (const client of clients) await client.close()
  }
}

function check(t: Test, clients: readonly Client[], name: string): void {
  for (const [number, { received }] of clients.entries()) {
    const got = received.map((reply) => [...reply].join()).sort()
    const want = Array.from({ length: PER_CLIENT }, (_, i) => `${number},${i},99`).sort()
    t.strictSame(got, want, name)
  }
}

t.test('clients get grouped replies as datagrams, from the address that they asked', async (t) => {
  // Connected clients: what comes from another address does not reach them.
  const table = [
    { name: 'IPv4', host: '127.0.0.1', asked: ['127.0.0.1', '127.0.0.1', '127.0.0.1'] },
    { name: 'IPv6', host: '::1', asked: ['::1', '::1', '::1'] },
    { name: 'wildcard', host: '0.0.0.0', asked: ['127.0.0.1', '127.0.0.2', '127.0.0.3'] },
    { name: 'dual stack', host: '::', asked: ['::1', '127.0.0.2', '127.0.0.3'] },
  ]
  for (const { name, host, asked } of table) {
    const { socket, seen } = open(t, host)
    const clients = await connectApart(socket.port, asked)
    await exchange(socket, clients)
    check(t, clients, name)
    t.strictSame(seen, { messages: clients.length, refusals: [] }, name)
    t.equal(socket.sendErrors, 0)
    for (const client of clients) await client.close()
  }
})

t.test(
  'if the system refuses groups, all replies arrive, and the refusal is reported once',
  async (t) => {
    let isRefused = true
    const { socket, seen } = open(t, '127.0.0.1', {
      sendmmsg: (fd, headers, count, flags) => {
        isRefused = seen.messages === 0 && count === 1
        return isRefused ? -1 : libc.sendmmsg(fd, headers, count, flags)
      },
      errno: () => (isRefused ? EIO : libc.errno()),
    })
    const client = await udpClient(socket.port)
    await exchange(socket, [client])
    check(t, [client], 'refused')
    t.strictSame(seen, { messages: PER_CLIENT, refusals: [EIO] })
    t.equal(socket.sendErrors, 0)
    await client.close()
  },
)
