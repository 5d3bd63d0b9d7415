import t from 'tap'
import { Query } from '../../../../src/dns/message/query.ts'
import { writeSockaddr } from '../../../../src/transport/sockaddr.ts'
import { BACKLOG_BATCHES } from '../../../../src/transport/udp/batch/backlog.ts'
import { BATCH, UNIT_PACKET } from '../../../../src/transport/udp/batch/layout.ts'
import { loadLibc } from '../../../../src/transport/udp/batch/libc.ts'
import {
  BatchLoop,
  LATE,
  LOOP_COUNTS,
  LoopCount,
} from '../../../../src/transport/udp/batch/loop.ts'
import { BatchSocket } from '../../../../src/transport/udp/batch/socket.ts'
import { WakeReader, Waker } from '../../../../src/transport/udp/batch/wake.ts'
import { RECEIVE_BUFFER_OCTETS } from '../../../../src/transport/udp/udp.ts'
import { udpClient } from '../../client.ts'
import { Echo, until } from '../../echo.ts'

const libc = loadLibc()
const MAX_AGE_MS = 200

/** Fills the buffer of a socket without an event loop. */
function flood(host: string, port: number, datagrams: number): void {
  const local = host.includes(':') ? '::1' : '127.0.0.1'
  const source = new BatchSocket(libc, { host: local, port: 0 })
  const copy = new Uint8Array(UNIT_PACKET + 12)
  writeSockaddr(copy, 0, host, port)
  const unit = source.takeUnit(copy, new Query())
  for (let i = 0; i < datagrams; i++) {
    source.reply(unit, Uint8Array.of(1), 1)
    if (i % BATCH === BATCH - 1 && !source.flush()) throw new Error('the buffer is full')
  }
  if (!source.flush()) throw new Error('the buffer is full')
  source.close()
}

/** An open socket, and what a thread has of it; the clock is `aheadMs` ahead of the system's. */
function attach(bound: string) {
  const options = { host: bound, port: 0, receiveBufferOctets: RECEIVE_BUFFER_OCTETS }
  const owner = new BatchSocket(libc, options)
  const { fd, host, port } = owner
  const clock = { aheadMs: 0 }
  const nowMs = (): number => Date.now() + clock.aheadMs
  const join = (): BatchSocket =>
    new BatchSocket(libc, { fd, host, port }, undefined, { maxAgeMs: MAX_AGE_MS, nowMs })
  return { owner, clock, join }
}

/** Receives `datagrams`; returns their lanes, batch by batch. */
async function lanesOf(socket: BatchSocket, datagrams: number): Promise<number[][]> {
  const batches: number[][] = []
  let rest = datagrams
  await until('all are received', () => {
    for (let count = socket.receive(); count > 0; count = socket.receive()) {
      batches.push(Array.from({ length: count }, (_, slot) => socket.laneOf(slot)))
      rest -= count
    }
    return rest === 0
  })
  return batches
}

const PLACES = [
  { bound: '127.0.0.1', asked: '127.0.0.1' },
  { bound: '0.0.0.0', asked: '127.0.0.2' },
  { bound: '::', asked: '::1' },
  { bound: '::', asked: '127.0.0.2' },
]

for (const { bound, asked } of PLACES) {
  const title = `${asked} on ${bound}`
  const echoes = async (socket: BatchSocket, want: number): Promise<boolean> => {
    const client = await udpClient(socket.port, asked)
    client.send(Uint8Array.of(7))
    await until('it is in', () => socket.receive() === 1)
    const lane = socket.laneOf(0)
    const query = new Query()
    socket.describe(0, query)
    socket.reply(0, Uint8Array.of(8), 1)
    socket.flush()
    // A connected client: a reply from another address would not come in.
    await until('it is answered', () => client.received.length === 1)
    await client.close()
    return lane === want && query.peerPort === client.port
  }

  t.test(`${title}: only during a backlog, what waited too long is late`, async (t) => {
    const { owner, clock, join } = attach(bound)
    const socket = join()
    clock.aheadMs = MAX_AGE_MS + 1
    flood(asked, owner.port, BACKLOG_BATCHES * BATCH - 1)
    await lanesOf(socket, BACKLOG_BATCHES * BATCH - 1)
    t.ok(await echoes(socket, 0), 'one datagram less than a backlog')

    flood(asked, owner.port, BACKLOG_BATCHES * BATCH)
    const before = await lanesOf(socket, BACKLOG_BATCHES * BATCH)
    t.notOk(before.flat().includes(LATE), 'what came before is not late')
    flood(asked, owner.port, 3)
    t.strictSame((await lanesOf(socket, 3)).flat(), [LATE, LATE, LATE])
    t.ok(await echoes(socket, LATE), 'a late one can be described, and answered from its address')
    clock.aheadMs = 0
    t.ok(await echoes(socket, 0), 'a fresh one is not late')

    clock.aheadMs = 5000
    t.ok(await echoes(socket, 0), 'no batch was full for long: the backlog is over')
    t.ok(await echoes(socket, 0), 'the kernel notes no time')

    flood(asked, owner.port, BACKLOG_BATCHES * BATCH)
    await lanesOf(socket, BACKLOG_BATCHES * BATCH)
    clock.aheadMs = -3_600_000
    t.ok(await echoes(socket, 0), 'the clock was set back by an hour')
    clock.aheadMs = MAX_AGE_MS + 1
    t.ok(await echoes(socket, 0), 'the backlog is over nevertheless')
    socket.detach()
    owner.close()
  })

  t.test(`${title}: a thread that follows one that ended in a backlog`, async (t) => {
    const { owner, clock, join } = attach(bound)
    flood(asked, owner.port, BACKLOG_BATCHES * BATCH)
    await lanesOf(join(), BACKLOG_BATCHES * BATCH)
    const next = join()
    clock.aheadMs = MAX_AGE_MS + 1
    t.ok(await echoes(next, 0))
    next.detach()
    owner.close()
  })
}

t.test('a loop counts what is late, and does not answer it', async (t) => {
  const { owner, clock, join } = attach('127.0.0.1')
  const waker = new Waker(libc)
  const none = (): void => {}
  const hooks = { onWake: none, onHandOver: none, onFault: none, onBatch: none, onBatchEnd: none }
  const loop = new BatchLoop(libc, new WakeReader(libc, waker), hooks)
  const [echo, counts] = [new Echo(), new Float64Array(LOOP_COUNTS)]
  loop.add(join(), echo, counts)
  const backlog = BACKLOG_BATCHES * BATCH
  flood(owner.host, owner.port, backlog)
  const serves = (total: number) => (): boolean => {
    loop.serveOnce()
    return echo.served + counts[LoopCount.Late]! === total
  }
  await until('the backlog is answered', serves(backlog))
  clock.aheadMs = MAX_AGE_MS + 1
  flood(owner.host, owner.port, 3)
  await until('the rest is dropped', serves(backlog + 3))
  t.equal(counts[LoopCount.Late], 3)
  loop.remove(owner.fd)
  waker.close()
  owner.close()
})

t.test('where the kernel cannot note times, nothing is late', async (t) => {
  const owner = new BatchSocket(libc, {
    host: '127.0.0.1',
    port: 0,
    receiveBufferOctets: RECEIVE_BUFFER_OCTETS,
  })
  const { fd, host, port } = owner
  const calls = { ...libc, setsockopt: () => -1 }
  const backlog = { maxAgeMs: MAX_AGE_MS, nowMs: () => Date.now() + 1000 }
  const socket = new BatchSocket(calls, { fd, host, port }, undefined, backlog)
  const datagrams = (BACKLOG_BATCHES + 1) * BATCH
  flood(host, port, datagrams)
  t.notOk((await lanesOf(socket, datagrams)).flat().includes(LATE))
  socket.detach()
  owner.close()
})
