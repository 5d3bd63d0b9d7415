import t, { type Test } from 'tap'
import { Query } from '../../../../src/dns/message/query.ts'
import type { QueryHandler } from '../../../../src/transport/exchange.ts'
import { writeSockaddr } from '../../../../src/transport/sockaddr.ts'
import { BATCH, UNIT_PACKET } from '../../../../src/transport/udp/batch/layout.ts'
import { type Libc, loadLibc } from '../../../../src/transport/udp/batch/libc.ts'
import {
  BatchLoop,
  LOOP_COUNTS,
  LoopCount,
  type LoopHooks,
} from '../../../../src/transport/udp/batch/loop.ts'
import { BatchSocket } from '../../../../src/transport/udp/batch/socket.ts'
import { WakeReader, Waker } from '../../../../src/transport/udp/batch/wake.ts'
import { RING_ENTRIES } from '../../../../src/transport/udp/xdp/ring.ts'
import { Targets } from '../../../../src/transport/udp/xdp/targets.ts'
import { XdpSocket } from '../../../../src/transport/udp/xdp/xdp-socket.ts'
import { Echo, Wish } from '../../echo.ts'
import { MemoryKernel } from '../xdp/memory-kernel.ts'
import { composePacket, IPV4_PACKET } from '../xdp/packets.ts'

/*
 * Loops of this very thread over real sockets: where one would sleep, the next step of the test happens
 * instead, and after the last it is stopped.
 */

const libc = loadLibc()
const EAGAIN = 11
const POLLIN = 1
const POLLOUT = 4

class Stage {
  readonly waker = new Waker(libc)
  readonly loop: BatchLoop
  readonly faults: unknown[] = []
  readonly handedOver: Uint8Array[] = []
  /** Names of the hooks that were called, and what tests add. */
  readonly events: string[] = []
  /** For each poll: the longest sleep, in milliseconds. */
  readonly sleeps: number[] = []
  /** For each poll: the events that it asked for of the socket added last. */
  readonly asked: number[] = []
  onWake = (): void => {}
  #steps: (() => void)[] = []
  #fds: Int32Array = new Int32Array()
  readonly #sockets: BatchSocket[] = []

  constructor(t: Test) {
    const hooks: LoopHooks = {
      onWake: () => {
        this.events.push('wake')
        this.onWake()
      },
      onHandOver: (_fd, unit) => this.handedOver.push(unit),
      onFault: (error) => this.faults.push(error),
      onBatch: () => this.events.push('batch'),
      onBatchEnd: () => this.events.push('end'),
    }
    const calls: Libc = {
      ...libc,
      poll: (fds, count, timeoutMs) => this.#poll(fds, count, timeoutMs),
      addressOf: (view) => {
        if (view instanceof Int32Array) this.#fds = view
        return libc.addressOf(view)
      },
    }
    this.loop = new BatchLoop(calls, new WakeReader(libc, this.waker), hooks)
    t.teardown(() => {
      this.waker.close()
      for (const socket of this.#sockets) socket.close()
    })
  }

  /** A socket of the loop and what it counted; `calls`: in place of the real ones. */
  serve(handler: QueryHandler, calls: Partial<Libc> = {}) {
    const socket = new BatchSocket({ ...libc, ...calls }, { host: '127.0.0.1', port: 0 })
    this.#sockets.push(socket)
    const counts = new Float64Array(LOOP_COUNTS)
    this.loop.add(socket, handler, counts)
    return { socket, counts }
  }

  client(port: number): Client {
    const client = new Client(port)
    this.#sockets.push(client.socket)
    return client
  }

  run(...steps: (() => void)[]): void {
    this.#steps = steps
    this.loop.run()
  }

  #poll(fds: number, count: number, timeoutMs: number): number {
    this.sleeps.push(timeoutMs)
    this.asked.push(this.#fds[count * 2 - 1]! & 0xffff)
    if (timeoutMs > 0) {
      const step = this.#steps.shift()
      if (step === undefined) this.loop.stop()
      else step()
    }
    return libc.poll(fds, count, 0)
  }
}

/** Sends and receives at once, without an event loop. */
class Client {
  readonly socket = new BatchSocket(libc, { host: '127.0.0.1', port: 0 })
  readonly #unit: number
  readonly #query = new Query()

  constructor(port: number) {
    const copy = new Uint8Array(UNIT_PACKET + 12)
    writeSockaddr(copy, 0, '127.0.0.1', port)
    this.#unit = this.socket.takeUnit(copy, this.#query)
  }

  send(...packets: Uint8Array[]): void {
    for (const packet of packets) this.socket.reply(this.#unit, packet, packet.length)
    if (!this.socket.flush()) throw new Error('the buffer of the client is full')
  }

  /** What has come since the last time. */
  received(): Buffer[] {
    const packets: Buffer[] = []
    for (let count = this.socket.receive(); count > 0; count = this.socket.receive()) {
      for (let slot = 0; slot < count; slot++) {
        this.socket.describe(slot, this.#query)
        packets.push(Buffer.from(this.#query.packet.subarray(0, this.#query.packetOctets)))
      }
    }
    return packets
  }
}

const echo = (...rest: number[]): Uint8Array => Uint8Array.of(Wish.Echo, ...rest)
const batch = (count: number): Uint8Array[] => Array.from({ length: count }, (_, i) => echo(i))
const numbers = (packets: readonly Buffer[]): number[] => packets.map((packet) => packet[1]!)

/** An echo that fails over packets whose second octet is in `at`. */
function failing(at: readonly number[], fail: () => number | Promise<number>): Echo {
  const handler = new Echo()
  const serve = handler.serve.bind(handler)
  handler.serve = (exchange) => (at.includes(exchange.query.packet[1]!) ? fail() : serve(exchange))
  return handler
}

t.test('queries are answered batch by batch, and then the loop sleeps', async (t) => {
  const stage = new Stage(t)
  const { socket } = stage.serve(new Echo())
  const client = stage.client(socket.port)
  stage.run(
    () => client.send(...batch(3)),
    () => t.strictSame(numbers(client.received()), [0, 1, 2]),
    () => {
      client.send(...batch(BATCH))
      client.send(...batch(1))
    },
    () => t.equal(client.received().length, BATCH + 1),
  )
  t.strictSame(stage.events, ['batch', 'end', 'batch', 'end', 'batch', 'end'])
  t.ok(
    stage.sleeps.every((ms) => ms === 1000),
    'it never looked without sleeping',
  )
})

t.test('a socket under load leaves the others their turn', async (t) => {
  const stage = new Stage(t)
  const flood = new Echo()
  const { socket } = stage.serve(flood)
  const quiet = stage.serve(new Echo())
  const [client, other] = [stage.client(socket.port), stage.client(quiet.socket.port)]
  let answered = -1
  let batches = 0
  const serve = flood.serve.bind(flood)
  flood.serve = (exchange) => {
    if (exchange.query.packet[1] === 0) {
      batches++
      client.received()
      if (other.received().length > 0) answered = batches
      if (answered === -1 && batches < 100) client.send(...batch(BATCH))
      if (batches === 1) other.send(echo(1))
    }
    return serve(exchange)
  }
  stage.run(() => {
    client.send(...batch(BATCH))
    client.send(...batch(BATCH))
  })
  t.ok(answered > 0 && answered < 20, `after ${answered} batches of the other`)
  t.ok(stage.sleeps.includes(0), 'it looked without sleeping')
})

t.test('an exception costs one query, wherever in the batch it is', async (t) => {
  const waits = (): Promise<number> => Promise.resolve(1)
  const throws = (): number => {
    throw new Error('bad')
  }
  const table = [
    { name: 'the first', at: [0], fail: throws },
    { name: 'one in the middle', at: [4], fail: throws },
    { name: 'the last', at: [7], fail: throws },
    { name: 'all', at: [0, 1, 2, 3, 4, 5, 6, 7], fail: throws },
    { name: 'one that would have to wait', at: [7], fail: waits },
  ]
  for (const { name, at, fail } of table) {
    const stage = new Stage(t)
    const handler = failing(at, fail)
    const { socket } = stage.serve(handler)
    const client = stage.client(socket.port)
    stage.run(
      () => client.send(...batch(8)),
      () => {
        const want = [0, 1, 2, 3, 4, 5, 6, 7].filter((n) => !at.includes(n))
        t.strictSame(numbers(client.received()), want, name)
      },
      () => client.send(echo(9)),
      () => t.strictSame(numbers(client.received()), [9], `${name}: later ones`),
    )
    t.equal(stage.faults.length, at.length, name)
    t.equal(stage.events.at(-1), 'end')
    stage.loop.remove(socket.fd)
    t.equal(handler.inFlight, 0, `${name}: what it was lent is given back`)
  }
})

t.test('an exception costs the other sockets nothing', async (t) => {
  const stage = new Stage(t)
  const fails = (at: readonly number[]): Echo => {
    return failing(at, () => {
      throw new Error('bad')
    })
  }
  const early = stage.serve(fails([0, 1, 2]))
  const late = stage.serve(fails([0]))
  const [client, other] = [stage.client(early.socket.port), stage.client(late.socket.port)]
  // A full batch is followed by another look: the early one fails while the late one is in a batch.
  stage.run(() => {
    client.send(...Array.from({ length: BATCH }, () => echo(9)))
    client.send(...batch(8))
    other.send(...batch(8))
  })
  const answered = numbers(client.received())
  t.strictSame(answered.slice(BATCH), [3, 4, 5, 6, 7])
  t.strictSame(numbers(other.received()), [1, 2, 3, 4, 5, 6, 7])
  t.equal(stage.faults.length, 4)
})

t.test('queries that this thread can not answer are handed over', async (t) => {
  const stage = new Stage(t)
  const { socket } = stage.serve(new Echo(256, { handsOver: true }))
  const client = stage.client(socket.port)
  stage.run(() => client.send(echo(1), Uint8Array.of(Wish.Wait, 2), echo(3)))
  t.strictSame(numbers(client.received()), [1, 3])
  const query = new Query()
  for (const unit of stage.handedOver) socket.reply(socket.takeUnit(unit, query), query.packet, 2)
  t.ok(socket.flush())
  t.strictSame(
    client.received().map((packet) => [...packet]),
    [[Wish.Wait, 2]],
  )
})

t.test('a new handler has the next query, and the old one its exchange back', async (t) => {
  const stage = new Stage(t)
  const [old, young] = [new Echo(1, { mark: 1 }), new Echo(1, { mark: 2 })]
  const { socket } = stage.serve(old)
  const client = stage.client(socket.port)
  const mark = Uint8Array.of(Wish.Mark)
  stage.onWake = () => {
    t.equal(stage.loop.setHandler(socket.fd, young), true)
    t.equal(stage.loop.setHandler(socket.fd + 1000, young), false)
  }
  stage.run(
    () => client.send(mark),
    () => stage.waker.call(),
    () => client.send(mark),
  )
  t.strictSame(numbers(client.received()), [1, 2])
  t.equal(old.inFlight, 0)
})

t.test('a socket that is taken away is answered to its end, and served no more', async (t) => {
  const stage = new Stage(t)
  const handler = new Echo()
  const { socket } = stage.serve(handler)
  const client = stage.client(socket.port)
  stage.onWake = () => {
    client.send(...batch(BATCH))
    client.send(...batch(10))
    stage.loop.remove(socket.fd)
    stage.loop.remove(socket.fd)
    t.equal(client.received().length, BATCH + 10)
    t.equal(handler.inFlight, 0)
    client.send(echo(1))
  }
  stage.run(() => stage.waker.call())
  t.strictSame(client.received(), [])
})

t.test('losses are counted', async (t) => {
  const stage = new Stage(t)
  const none = stage.serve(new Echo(0))
  const some = stage.serve(new Echo())
  const [toNone, toSome] = [stage.client(none.socket.port), stage.client(some.socket.port)]
  stage.run(
    () => {
      toNone.send(...batch(3))
      toSome.send(echo(1))
    },
    () => toSome.send(Uint8Array.of(Wish.Long), echo(2)),
  )
  t.strictSame(numbers(toSome.received()), [1, 2])
  t.equal(none.counts[LoopCount.Dropped], 3)
  t.equal(some.counts[LoopCount.SendErrors], 1)
})

t.test('the loop that replaces another one adds to its counts', async (t) => {
  const [stage, next] = [new Stage(t), new Stage(t)]
  const { socket, counts } = stage.serve(new Echo())
  const client = stage.client(socket.port)
  stage.run(() => client.send(Uint8Array.of(Wish.Long), Uint8Array.of(Wish.Long)))
  t.equal(counts[LoopCount.SendErrors], 2)
  const { fd, host, port } = socket
  next.loop.add(new BatchSocket(libc, { fd, host, port }), new Echo(), counts)
  next.run(() => client.send(echo(1)))
  t.equal(counts[LoopCount.SendErrors], 2)
  next.run(() => client.send(Uint8Array.of(Wish.Long)))
  t.equal(counts[LoopCount.SendErrors], 3)
})

t.test('a reply that another socket could not send is counted', async (t) => {
  const stage = new Stage(t)
  const { socket, counts } = stage.serve(new Echo())
  stage.run(() => socket.countUnsent())
  t.equal(counts[LoopCount.SendErrors], 1)
})

t.test('an error of a socket is counted, and it is read again', async (t) => {
  const stage = new Stage(t)
  let [errors, errno] = [1, 0]
  const { socket, counts } = stage.serve(new Echo(), {
    errno: () => errno || libc.errno(),
    recvmmsg: (...args) => {
      errno = errors-- > 0 ? 105 : 0
      return errno === 0 ? libc.recvmmsg(...args) : -1
    },
  })
  const client = stage.client(socket.port)
  stage.run(
    () => client.send(echo(1)),
    () => {},
  )
  t.strictSame(numbers(client.received()), [1])
  t.equal(counts[LoopCount.SocketErrors], 1)
})

t.test('while the buffer is full nothing is read, and no reply is lost', async (t) => {
  const stage = new Stage(t)
  let [isFull, failed, reads] = [true, false, 0]
  const { socket, counts } = stage.serve(new Echo(), {
    errno: () => (failed ? EAGAIN : libc.errno()),
    recvmmsg: (...args) => {
      failed = false
      reads++
      return libc.recvmmsg(...args)
    },
    sendmmsg: (...args) => {
      failed = isFull
      return isFull ? -1 : libc.sendmmsg(...args)
    },
  })
  const client = stage.client(socket.port)
  const before: number[] = []
  stage.run(
    () => client.send(...batch(5)),
    () => {
      before.push(reads)
      client.send(echo(9))
    },
    () => {
      before.push(reads)
      t.strictSame(client.received(), [])
      isFull = false
    },
  )
  t.equal(before[0], before[1], 'it is not read')
  t.strictSame(stage.asked, [POLLIN, POLLOUT, POLLOUT, POLLIN])
  t.strictSame(numbers(client.received()), [0, 1, 2, 3, 4, 9])
  t.equal(counts[LoopCount.SendErrors], 0)
})

t.test('a batch goes out in as many parts as the kernel takes it', async (t) => {
  const stage = new Stage(t)
  const sizes: number[] = []
  const { socket, counts } = stage.serve(new Echo(), {
    sendmmsg: (fd, headers, count, flags) => {
      sizes.push(count)
      return libc.sendmmsg(fd, headers, Math.min(count, 10), flags)
    },
  })
  const client = stage.client(socket.port)
  stage.run(() => client.send(...batch(BATCH)))
  t.strictSame(numbers(client.received()), [...Array(BATCH).keys()])
  t.strictSame(sizes, [64, 54, 44, 34, 24, 14, 4])
  t.equal(counts[LoopCount.SendErrors], 0)
})

t.test('calls are heard between batches, once each, and can end the loop', async (t) => {
  const stage = new Stage(t)
  const { socket } = stage.serve(new Echo())
  const client = stage.client(socket.port)
  let calls = 0
  stage.onWake = () => {
    if (++calls === 3) stage.loop.stop()
  }
  stage.run(
    () => stage.waker.call(),
    () => {
      stage.waker.call()
      stage.waker.call()
      client.send(echo(1))
    },
    () => stage.waker.call(),
    () => t.fail('it was stopped'),
  )
  t.strictSame(stage.events, ['wake', 'wake', 'batch', 'end', 'wake'])
})

t.test('a busy loop serves waiting queries, and never sleeps', async (t) => {
  const stage = new Stage(t)
  const { socket } = stage.serve(new Echo())
  const client = stage.client(socket.port)
  stage.loop.serveOnce()
  client.send(...batch(BATCH))
  client.send(...batch(3))
  stage.loop.serveOnce()
  t.equal(client.received().length, BATCH + 3)
  stage.onWake = () => stage.loop.stop()
  stage.waker.call()
  client.send(echo(1))
  stage.loop.serveOnce()
  t.strictSame(numbers(client.received()), [1], 'a call that stops the loop delays no query')
  t.ok(stage.sleeps.every((ms) => ms === 0))
})

t.test('an exception of a call is reported, and the loop goes on', async (t) => {
  const stage = new Stage(t)
  const { socket } = stage.serve(new Echo())
  const client = stage.client(socket.port)
  stage.onWake = () => {
    throw new Error('bad')
  }
  stage.run(
    () => {
      client.send(...batch(2))
      stage.waker.call()
    },
    () => {},
  )
  t.strictSame(numbers(client.received()), [0, 1])
  t.equal(stage.faults.length, 1)
})

t.test('AF_XDP: a card that pauses with all frames receives again afterwards', async (t) => {
  const stage = new Stage(t)
  const memory = new MemoryKernel(true)
  const { socket } = stage.serve(new Echo())
  const [lane, address] = [{ fd: socket.fd, handler: new Echo() }, new Uint8Array(16)]
  address.set(IPV4_PACKET.destination)
  const targets = new Targets([{ family: 1, address, port: 53, lane: 0 }], [])
  const routes = { targets, lanes: [{ socket }], mtuOctets: 1500 }
  const xdp = new XdpSocket(memory.kernel, memory.place, routes)
  t.teardown(() => xdp.detach())
  stage.loop.addLanes(xdp, [lane], new Float64Array(LOOP_COUNTS))
  const packet = composePacket({ ...IPV4_PACKET, message: echo(1) })
  memory.budget = 0
  for (let i = 0; i < RING_ENTRIES; i++) memory.receive(packet)
  stage.run(
    () => {
      t.equal(memory.held, RING_ENTRIES)
      t.equal(stage.sleeps.at(-1), 10)
    },
    () => {
      t.equal(memory.free, 0, 'the card pauses')
      memory.budget = RING_ENTRIES
      memory.kernel.sendto(xdp.fd, 0, 0, 0, 0, 0)
    },
    () => {
      t.equal(memory.free, RING_ENTRIES)
      t.equal(stage.sleeps.at(-1), 1000)
    },
  )
  t.equal(memory.sent.length, RING_ENTRIES)
})
