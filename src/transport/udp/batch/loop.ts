import { Protocol, type Query } from '../../../dns/message/query.ts'
import { type Exchange, HAND_OVER, type QueryHandler } from '../../exchange.ts'
import type { ProxyRules } from '../../proxy/rules.ts'
import { BATCH } from './layout.ts'
import type { Libc } from './libc.ts'
import type { WakeReader } from './wake.ts'

/** Rounds in which a busy socket is served before the others are polled again. */
const ROUNDS_PER_POLL = 8

/** Longest sleep. Bounds the delay until the loop notices a stop without a wakeup. */
const SLEEP_MS_MAX = 1000

/** Longest sleep while a socket needs its turn. */
const TURN_MS = 10

/**
 * Batches that are still answered when a socket is removed from the loop: as many as its buffer can
 * hold.
 */
const BATCHES_AT_END_MAX = 4096

/** `struct pollfd`: fd 0..3, events 4..5, revents 6..7; here as 32-bit words, little endian. */
const POLLFD_WORDS = 2
const POLLIN = 1
const POLLOUT = 4
const REVENTS_SHIFT = 16

/** Losses in a loop, by socket; shared with the thread that exports them. */
export const LoopCount = {
  /** Queries for which no exchange was free. */
  Dropped: 0,
  SendErrors: 1,
  SocketErrors: 2,
  /** Queries that waited too long for this thread. */
  Late: 3,
} as const
export const LOOP_COUNTS = 4

/** Result of `laneOf`: the packet waited too long, and is dropped. */
export const LATE = -2

/**
 * A socket that a loop can serve. A batch is `receive`, then for each slot `laneOf`, `room`,
 * `describe` and perhaps `reply`, then `flush`.
 */
export interface LoopSocket {
  /** Polled for packets. */
  readonly fd: number
  /** Replies that could not be sent. */
  readonly sendErrors: number
  /** Offset of `room()` in the packet memory; -1 = it is elsewhere. */
  readonly roomAt: number
  /** Whether `receive` must be called soon, even if `poll` reports no packet. */
  readonly needsTurn: boolean
  /** Returns the number of filled slots: 0 if nothing has arrived, -1 on an error. */
  receive(): number
  /** The index of the lane that answers the packet in `slot`; -1 or LATE = drop the packet. */
  laneOf(slot: number): number
  /** Room for the next reply, REPLY_OCTETS_MAX octets. Undefined while replies can't be sent. */
  room(): Uint8Array | undefined
  /**
   * Fills in the packet in `slot`, and its source and destination addresses. Returns false if its PROXY header makes
   * the socket drop it.
   */
  describe(slot: number, query: Query): boolean
  /** Queues `octets` of `bytes` as the reply to the packet in `slot`. */
  reply(slot: number, bytes: Uint8Array, octets: number): void
  /**
   * Returns a copy of the packet in `slot` and its addresses, for `BatchSocket.takeUnit`. `query`: as described last.
   */
  copyUnit(slot: number, query: Query): Uint8Array
  /** Sets the rules for PROXY headers; undefined = packets have none. Absent = they never have. */
  setProxy?(server: string, rules: ProxyRules | undefined): void
  /** Counts a reply for which there was no room. */
  countUnsent(): void
  /** Sends what is queued. Returns false if some of it must wait until the fd is writable. */
  flush(): boolean
  /** Releases the memory of this thread. */
  detach(): void
}

/** What a loop needs from the owner of the thread. */
export interface LoopHooks {
  /** Called between two batches, after another thread woke the loop. */
  onWake(): void
  /**
   * Called with a query that this thread can't answer: `unit` is a copy of it for the socket `fd`
   * (`BatchSocket.takeUnit`).
   */
  onHandOver(fd: number, unit: Uint8Array): void
  /** Called when a query ended with an exception, and without a reply. */
  onFault(error: unknown): void
  /** Called once per batch, before its queries: reads the time for all of them. */
  onBatch(): void
  /** Called once per batch, after its replies were sent. */
  onBatchEnd(): void
}

/** The packets of one UDP socket: all that it receives, and those that bypassed it (`addLanes`). */
class Lane {
  /** The UDP socket. */
  readonly fd: number
  #handler: QueryHandler | undefined
  /** Lent by the handler for one query after another. */
  #exchange: Exchange | undefined

  constructor(fd: number, handler: QueryHandler) {
    this.fd = fd
    this.#handler = handler
  }

  /** Undefined = the packets are dropped. */
  get handler(): QueryHandler | undefined {
    return this.#handler
  }

  set handler(handler: QueryHandler | undefined) {
    if (this.#exchange !== undefined) this.#handler?.release(this.#exchange)
    this.#exchange = undefined
    this.#handler = handler
  }

  /** Undefined if too many exchanges are lent already. @hot */
  exchange(): Exchange | undefined {
    this.#exchange ??= this.#handler?.acquire()
    return this.#exchange
  }
}

/** What answers the packets of the UDP socket `fd`. */
interface LoopLane {
  readonly fd: number
  readonly handler: QueryHandler
}

const toLane = ({ fd, handler }: LoopLane): Lane => new Lane(fd, handler)

/** One socket of a loop. */
class Member {
  readonly socket: LoopSocket
  /** Indexed by LoopCount. */
  readonly counts: Float64Array
  lanes: readonly Lane[]
  /** Replies that an earlier thread could not send from the same socket. */
  readonly #pastSendErrors: number
  isReady = true
  /** While its send buffer is full, the socket is not read. */
  isClogged = false
  /**
   * Position in a batch of `filled` slots: after an exception the rest is served. 0 filled = no
   * batch.
   */
  slot = 0
  filled = 0

  constructor(socket: LoopSocket, lanes: readonly Lane[], counts: Float64Array) {
    this.socket = socket
    this.lanes = lanes
    this.counts = counts
    this.#pastSendErrors = counts[LoopCount.SendErrors]!
  }

  /** @hot */
  countSendErrors(): void {
    this.counts[LoopCount.SendErrors] = this.#pastSendErrors + this.socket.sendErrors
  }

  setLanes(lanes: readonly Lane[]): void {
    for (const lane of this.lanes) lane.handler = undefined
    this.lanes = lanes
  }
}

/**
 * Serves sockets in a thread that does nothing else: no promise, no event loop. The thread sleeps
 * in `poll` while no datagram arrives.
 *
 *     ┌─▶ woken? onWake ─▶ each ready socket: receive, answer all, flush ─┬─ batch full: again ─┐
 *     │                                                                   └─ else: poll (sleep) ─┤
 *     └─────────────────────────────────────────────────────────────────────────────────────────┘
 */
export class BatchLoop {
  readonly #libc: Libc
  readonly #wake: WakeReader
  readonly #hooks: LoopHooks
  #members: Member[] = []
  #fds: Int32Array = new Int32Array(POLLFD_WORDS)
  #fdsAddress = 0
  /** The member whose batch is being served: an exception is charged to it. */
  #current: Member | undefined
  #isStopped = false

  constructor(libc: Libc, wake: WakeReader, hooks: LoopHooks) {
    this.#libc = libc
    this.#wake = wake
    this.#hooks = hooks
    this.#listFds()
  }

  /**
   * Serves a socket from the next round on. `counts`: has LOOP_COUNTS entries, and is increased. It
   * holds the counts of an earlier thread if this thread replaces one.
   */
  add(socket: LoopSocket, handler: QueryHandler, counts: Float64Array): void {
    this.addLanes(socket, [{ fd: socket.fd, handler }], counts)
  }

  /** As `add`, for a socket whose packets are those of several UDP sockets. */
  addLanes(socket: LoopSocket, lanes: readonly LoopLane[], counts: Float64Array): void {
    this.#members.push(new Member(socket, lanes.map(toLane), counts))
    this.#listFds()
  }

  /** Replaces the lanes of the socket `fd`, which `addLanes` added. */
  setLanes(fd: number, lanes: readonly LoopLane[]): void {
    this.#find(fd)?.setLanes(lanes.map(toLane))
  }

  /** The socket `fd`, if the loop serves it. */
  socketOf(fd: number): LoopSocket | undefined {
    return this.#find(fd)?.socket
  }

  /**
   * Gives later queries of the UDP socket `fd` to `handler`, in every lane. Returns false if the
   * loop does not serve that socket.
   */
  setHandler(fd: number, handler: QueryHandler): boolean {
    for (const lane of this.#lanesOf(fd)) lane.handler = handler
    return this.#find(fd) !== undefined
  }

  /** Answers what has arrived, and stops serving the socket. */
  remove(fd: number): void {
    const member = this.#find(fd)
    if (member === undefined) return
    // A retired socket has a finite number of datagrams. The bound is for a socket that is not retired.
    for (let batch = 0; batch < BATCHES_AT_END_MAX && this.#serveBatch(member) > 0; batch++);
    member.socket.flush()
    member.socket.detach()
    member.countSendErrors()
    member.setLanes([])
    this.#members = this.#members.filter((other) => other !== member)
    // Its replies can be sent no more.
    for (const lane of this.#lanesOf(fd)) lane.handler = undefined
    this.#listFds()
  }

  #find(fd: number): Member | undefined {
    return this.#members.find(({ socket }) => socket.fd === fd)
  }

  #lanesOf(fd: number): Lane[] {
    return this.#members.flatMap(({ lanes }) => lanes.filter((lane) => lane.fd === fd))
  }

  stop(): void {
    this.#isStopped = true
  }

  /** Runs until `stop`. An exception of a handler costs one query. */
  run(): void {
    this.#isStopped = false
    while (!this.#isStopped) this.#tryRounds(true)
  }

  /**
   * Serves what has arrived and does not sleep, for a thread that has other work meanwhile. Ends by
   * itself, so `stop` has no effect on it. Repeated calls serve all sockets.
   */
  serveOnce(): void {
    this.#poll(0)
    this.#tryRounds(false)
  }

  #tryRounds(sleeps: boolean): void {
    try {
      this.#runRounds(sleeps)
    } catch (error) {
      this.#hooks.onFault(error)
      if (this.#current !== undefined) this.#current.slot++
      this.#current = undefined
    }
  }

  #runRounds(sleeps: boolean): void {
    for (let round = 1; sleeps || round <= ROUNDS_PER_POLL; round++) {
      if (this.#wake.isCalled()) this.#hooks.onWake()
      // No wakeup would end a sleep that starts now.
      if (sleeps && this.#isStopped) return
      let isBusy = false
      for (let i = 0; i < this.#members.length; i++) {
        const member = this.#members[i]!
        if (!member.isReady) continue
        member.isReady = this.#serveBatch(member) === BATCH
        if (member.isReady) isBusy = true
      }
      if (!isBusy) {
        if (!sleeps) return
        this.#poll(SLEEP_MS_MAX)
      } else if (round % ROUNDS_PER_POLL === 0 && this.#members.length > 1) this.#poll(0)
    }
  }

  /** Returns the number of datagrams. @hot */
  #serveBatch(member: Member): number {
    const { socket } = member
    if (member.isClogged && !this.#unclog(member)) return 0
    if (member.filled === 0) {
      const count = socket.receive()
      if (count <= 0) {
        if (count < 0) member.counts[LoopCount.SocketErrors]! += 1
        return 0
      }
      member.slot = 0
      member.filled = count
    }
    this.#hooks.onBatch()
    this.#current = member
    for (; member.slot < member.filled; member.slot++) this.#serve(member, member.slot)
    this.#current = undefined
    if (!socket.flush()) member.isClogged = true
    member.countSendErrors()
    this.#hooks.onBatchEnd()
    const { filled } = member
    member.filled = 0
    return filled
  }

  /** @hot */
  #serve(member: Member, slot: number): void {
    const { socket } = member
    const index = socket.laneOf(slot)
    if (index === LATE) member.counts[LoopCount.Late]! += 1
    const lane = index < 0 ? undefined : member.lanes[index]
    const handler = lane?.handler
    if (lane === undefined || handler === undefined) return
    const exchange = lane.exchange()
    if (exchange === undefined) {
      member.counts[LoopCount.Dropped]! += 1
      return
    }
    exchange.query.protocol = Protocol.Udp
    const room = socket.room()
    if (room === undefined) {
      socket.countUnsent()
      return
    }
    exchange.reply = room
    exchange.replyAt = socket.roomAt
    if (!socket.describe(slot, exchange.query)) return
    const octets = handler.serve(exchange)
    if (typeof octets !== 'number') {
      // This thread never continues a handler that waits: the exchange is free for the next query.
      throw new Error('a handler waits in a thread that cannot wait')
    }
    if (octets > 0) socket.reply(slot, exchange.reply, octets)
    else if (octets === HAND_OVER) {
      this.#hooks.onHandOver(lane.fd, socket.copyUnit(slot, exchange.query))
    }
  }

  #unclog(member: Member): boolean {
    member.isClogged = !member.socket.flush()
    return !member.isClogged
  }

  #poll(timeoutMs: number): void {
    const fds = this.#fds
    let sleepMs = timeoutMs
    for (let i = 0; i < this.#members.length; i++) {
      const member = this.#members[i]!
      if (member.socket.needsTurn) {
        member.isReady = true
        sleepMs = Math.min(timeoutMs, TURN_MS)
      }
      fds[(i + 1) * POLLFD_WORDS + 1] = member.isClogged ? POLLOUT : POLLIN
      // A socket with lanes sends long replies through a UDP socket, which has no batch of its own then.
      member.countSendErrors()
    }
    fds[1] = POLLIN
    const found = this.#libc.poll(this.#fdsAddress, this.#members.length + 1, sleepMs)
    if (found <= 0) return
    if (fds[1]! >>> REVENTS_SHIFT !== 0) this.#wake.clear()
    for (let i = 0; i < this.#members.length; i++) {
      if (fds[(i + 1) * POLLFD_WORDS + 1]! >>> REVENTS_SHIFT !== 0) this.#members[i]!.isReady = true
    }
  }

  /** The first fd is that of the wakeup. */
  #listFds(): void {
    this.#fds = new Int32Array((this.#members.length + 1) * POLLFD_WORDS)
    this.#fds[0] = this.#wake.fd
    this.#members.forEach(({ socket }, i) => {
      this.#fds[(i + 1) * POLLFD_WORDS] = socket.fd
    })
    this.#fdsAddress = this.#libc.addressOf(this.#fds)
  }
}
