import { Protocol } from '../../../dns/message/query.ts'
import { type Exchange, HAND_OVER, type QueryHandler, SILENT } from '../../exchange.ts'
import { BATCH, PACKET_HEAD_OCTETS } from './layout.ts'
import type { Libc } from './libc.ts'
import type { BatchSocket } from './socket.ts'
import type { WakeReader } from './wake.ts'

/** Rounds in which a busy socket is served before the others are looked at again. */
const ROUNDS_PER_POLL = 8

/** Longest sleep: only a bound on how long an end that nobody told us of can go unseen. */
const SLEEP_MS_MAX = 1000

/** Batches that are still answered when a socket is taken from the loop: as much as its buffer can hold. */
const BATCHES_AT_END_MAX = 4096

/** `struct pollfd`: fd 0..3, events 4..5, revents 6..7; here as 32-bit words, little endian. */
const POLLFD_WORDS = 2
const POLLIN = 1
const POLLOUT = 4
const REVENTS_SHIFT = 16

/** What is lost in a loop, by socket; shared with the thread that shows it. */
export const LoopCount = {
  /** Queries that found every exchange taken. */
  Dropped: 0,
  SendErrors: 1,
  SocketErrors: 2,
} as const
export const LOOP_COUNTS = 3

/** What a loop asks of whoever owns the thread. */
export interface LoopHooks {
  /** Between two batches, after somebody woke the loop. */
  onWake(): void
  /** A query that this thread can't answer: `unit` is a copy of it (`BatchSocket.takeUnit`). */
  onHandOver(socket: BatchSocket, unit: Uint8Array): void
  /** A query of this socket ended with an exception, and without an answer. */
  onFault(error: unknown): void
  /** Once per batch, before its queries: the time to take for all of them. */
  onBatch(): void
  /** Once per batch, after its replies were sent. */
  onBatchEnd(): void
}

/** One socket of a loop. */
class Member {
  readonly socket: BatchSocket
  /** By LoopCount. */
  readonly counts: Float64Array
  #handler: QueryHandler
  /** Whether plain queries are answered in the memory of their packets. */
  isInPlace: boolean
  /** Lent by `handler`, for one query after the other. */
  exchange: Exchange | undefined
  isReady = true
  /** While its buffer is full it is not read. */
  isClogged = false
  /** Where in a batch of `filled` it is: after an exception the rest is served; 0 filled = in none. */
  slot = 0
  filled = 0

  constructor(socket: BatchSocket, handler: QueryHandler, counts: Float64Array) {
    this.socket = socket
    this.#handler = handler
    this.isInPlace = this.#canBeInPlace()
    this.counts = counts
  }

  get handler(): QueryHandler {
    return this.#handler
  }

  set handler(handler: QueryHandler) {
    this.#handler = handler
    this.isInPlace = this.#canBeInPlace()
  }

  #canBeInPlace(): boolean {
    return this.#handler.serveInPlace !== undefined && this.socket.packetAt(0) !== -1
  }
}

/**
 * Serves sockets in a thread that does nothing else: no promise, no event loop, asleep in `poll` while
 * nothing comes.
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
  /** Whose batch is being served: an exception is its own. */
  #current: Member | undefined
  #isStopped = false

  constructor(libc: Libc, wake: WakeReader, hooks: LoopHooks) {
    this.#libc = libc
    this.#wake = wake
    this.#hooks = hooks
    this.#listFds()
  }

  /** Serves a socket from the next round on. `counts`: LOOP_COUNTS of them. */
  add(socket: BatchSocket, handler: QueryHandler, counts: Float64Array): void {
    this.#members.push(new Member(socket, handler, counts))
    this.#listFds()
  }

  /** Later queries of the socket with that fd go to `handler`. False: there is none. */
  setHandler(fd: number, handler: QueryHandler): boolean {
    const member = this.#members.find(({ socket }) => socket.fd === fd)
    if (member === undefined) return false
    if (member.exchange !== undefined) member.handler.release(member.exchange)
    member.exchange = undefined
    member.handler = handler
    return true
  }

  /** Answers what has come already, and serves the socket no more. */
  remove(fd: number): void {
    const member = this.#members.find(({ socket }) => socket.fd === fd)
    if (member === undefined) return
    // What came before the socket was retired is finite; a socket that was not, must end as well.
    for (let batch = 0; batch < BATCHES_AT_END_MAX && this.#serveBatch(member) > 0; batch++);
    member.socket.flush()
    member.socket.detach()
    this.#count(member)
    if (member.exchange !== undefined) member.handler.release(member.exchange)
    this.#members = this.#members.filter((other) => other !== member)
    this.#listFds()
  }

  stop(): void {
    this.#isStopped = true
  }

  /** Returns after `stop`. An exception of a handler costs one query. */
  run(): void {
    this.#isStopped = false
    while (!this.#isStopped) this.#tryRounds(true)
  }

  /**
   * Serves what there is and does not sleep: for a thread that has something else to do meanwhile. It ends by itself, so that
   * `stop` means nothing here: calls, however many, keep no socket waiting.
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
      // Nobody would end a sleep that began now.
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

  /** Returns how many datagrams there were. @hot */
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
    this.#count(member)
    this.#hooks.onBatchEnd()
    const { filled } = member
    member.filled = 0
    return filled
  }

  /** @hot */
  #serve(member: Member, slot: number): void {
    const { socket, handler } = member
    member.exchange ??= handler.acquire()
    const exchange = member.exchange
    if (exchange === undefined) {
      member.counts[LoopCount.Dropped]! += 1
      return
    }
    exchange.query.protocol = Protocol.Udp
    if (member.isInPlace && this.#serveInPlace(member, exchange, slot)) return
    const room = socket.room()
    if (room === undefined) {
      socket.countUnsent()
      return
    }
    exchange.reply = room
    socket.describe(slot, exchange.query)
    const octets = handler.serve(exchange)
    if (typeof octets !== 'number') {
      // Nothing that waits ever goes on in this thread: the exchange is free for the next query.
      throw new Error('a handler waits in a thread that can not')
    }
    if (octets > 0) socket.reply(slot, exchange.reply, octets)
    else if (octets === HAND_OVER) this.#hooks.onHandOver(socket, socket.copyUnit(slot))
  }

  /** False: the packet is as it was. @hot */
  #serveInPlace({ socket, handler }: Member, exchange: Exchange, slot: number): boolean {
    const octets = socket.packetOctets(slot)
    if (octets > PACKET_HEAD_OCTETS) return false
    const at = socket.packetAt(slot)
    const reply = handler.serveInPlace!(exchange, at, octets, PACKET_HEAD_OCTETS, socket, slot)
    if (reply === 0) return false
    if (reply !== SILENT) socket.replyInPlace(slot, reply)
    return true
  }

  #unclog(member: Member): boolean {
    member.isClogged = !member.socket.flush()
    return !member.isClogged
  }

  #count(member: Member): void {
    member.counts[LoopCount.SendErrors] = member.socket.sendErrors
  }

  #poll(timeoutMs: number): void {
    const fds = this.#fds
    for (let i = 0; i < this.#members.length; i++) {
      fds[(i + 1) * POLLFD_WORDS + 1] = this.#members[i]!.isClogged ? POLLOUT : POLLIN
    }
    fds[1] = POLLIN
    const found = this.#libc.poll(this.#fdsAddress, this.#members.length + 1, timeoutMs)
    if (found <= 0) return
    if (fds[1]! >>> REVENTS_SHIFT !== 0) this.#wake.clear()
    for (let i = 0; i < this.#members.length; i++) {
      if (fds[(i + 1) * POLLFD_WORDS + 1]! >>> REVENTS_SHIFT !== 0) this.#members[i]!.isReady = true
    }
  }

  /** The first is what wakes us. */
  #listFds(): void {
    this.#fds = new Int32Array((this.#members.length + 1) * POLLFD_WORDS)
    this.#fds[0] = this.#wake.fd
    this.#members.forEach(({ socket }, i) => {
      this.#fds[(i + 1) * POLLFD_WORDS] = socket.fd
    })
    this.#fdsAddress = this.#libc.addressOf(this.#fds)
  }
}
