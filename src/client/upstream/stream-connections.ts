import type { Socket } from 'node:net'
import type { Clock } from '../../base/clock.ts'
import { EventLoopBudget } from '../../base/event-loop-budget.ts'
import type { Peer } from '../../base/places.ts'
import type { Timers } from '../../base/timers.ts'
import { ReuseCounts } from './udp-sockets.ts'
import {
  CANCELLED,
  type Cancellation,
  composeQuery,
  isReplyTo,
  type Outcome,
  readReply,
  socketFailure,
  TIMED_OUT,
  type UpstreamQuery,
  type UpstreamQuestion,
} from './upstream-query.ts'

/** Queries in flight on one connection. Some servers answer them one after the other. */
const PIPELINED_MAX = 16
/** Queries without a reply on one connection that no client waits for. After more, it gets no further queries. */
const CANCELLED_MAX = 1000
/** Messages of a connection that answer no query. More end it. */
const STRAYS_MAX = 64
const LENGTH_OCTETS = 2
const HEADER_OCTETS = 12
const EMPTY = Buffer.alloc(0)
const CLOSED = 'the server closed the connection'

/**
 * Turns of the connections to all servers: a long reply takes a tenth of a millisecond or more to parse and to send
 * on, and many may arrive at once.
 */
const turns = new EventLoopBudget()
let servers = 0

/** When kept connections are closed. */
export interface StreamLimits {
  /** Maximum idle time. */
  readonly expireMs: number
  /** Maximum age; 0 = no limit. */
  readonly maxAgeMs: number
  /** Maximum number of idle connections; 0 = no limit. */
  readonly idleMax: number
}

/** Opens a connection and calls `ready` once queries may be sent. */
export type OpenStream = (ready: () => void) => Socket

interface Waiting {
  readonly query: UpstreamQuery
  readonly finish: (outcome: Outcome) => void
}

/** A connection with several queries in flight, matched to their replies by id (RFC 7766 section 6.2.1.1). */
class StreamConnection {
  readonly openedMs: number
  /** True once a query was answered. */
  isProven = false
  /** False: it accepts no more queries, and is closed after the last one in flight. */
  isUsable = true
  stopExpiry: (() => void) | undefined
  readonly #socket: Socket
  readonly #waiting = new Map<number, Waiting>()
  /** Queries that no client waits for any more, by id: their replies are no strays. */
  readonly #cancelled = new Map<number, UpstreamQuery>()
  readonly #onIdle: (connection: StreamConnection) => void
  readonly #peer: Peer
  #isReady = false
  /** True until our next turn. */
  #isHeld = false
  #hasEnded = false
  /** Why the connection ends after our next turn; '' = it does not. */
  #failure = ''
  #received: Buffer = EMPTY
  #strays = 0

  constructor(
    open: OpenStream,
    peer: Peer,
    openedMs: number,
    onIdle: (connection: StreamConnection) => void,
  ) {
    this.openedMs = openedMs
    this.#peer = peer
    this.#onIdle = onIdle
    const socket = open(() => {
      this.#isReady = true
      for (const { query } of this.#waiting.values()) this.#send(query)
    })
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    socket.on('error', (error) => this.#endAfterTurn(socketFailure(error)))
    socket.on('end', () => this.#endAfterTurn(CLOSED))
    socket.on('close', () => this.#endAfterTurn(CLOSED))
  }

  get inFlight(): number {
    return this.#waiting.size
  }

  /** Sends a query. Calls `finish` once, unless `giveUp` was called before. Returns the query. */
  ask(question: UpstreamQuestion, finish: (outcome: Outcome) => void): UpstreamQuery {
    const query = composeQuery(question, (id) => {
      return this.#waiting.has(id) || this.#cancelled.has(id)
    })
    this.#waiting.set(query.id, { query, finish })
    if (this.#isReady) this.#send(query)
    return query
  }

  /** Stops waiting for a reply. The server is slow or dead, so the connection gets no more queries. */
  giveUp(query: UpstreamQuery): void {
    this.#waiting.delete(query.id)
    this.isUsable = false
    if (this.#waiting.size === 0) this.close()
  }

  /** Stops waiting for a reply that is not needed. This says nothing about the server. */
  cancel(query: UpstreamQuery): void {
    this.#waiting.delete(query.id)
    this.#cancelled.set(query.id, query)
    if (this.#cancelled.size > CANCELLED_MAX) this.isUsable = false
    this.#rest()
  }

  close(): void {
    this.#end(CLOSED)
  }

  #send({ octets }: UpstreamQuery): void {
    const framed = Buffer.allocUnsafe(LENGTH_OCTETS + octets.length)
    framed.writeUInt16BE(octets.length, 0)
    framed.set(octets, LENGTH_OCTETS)
    this.#socket.write(framed)
  }

  #receive(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk])
    // While the connection waits for its turn, data that was already on its way is only stored.
    if (!this.#isHeld) this.#read()
  }

  /** Accepts the complete messages. When other work has its turn, the remaining ones wait, and the socket is paused. */
  #read(): void {
    const received = this.#received
    let at = 0
    while (received.length - at >= LENGTH_OCTETS) {
      const start = at + LENGTH_OCTETS
      const end = start + received.readUInt16BE(at)
      if (end - start < HEADER_OCTETS) {
        this.#end('a message is shorter than a header')
        return
      }
      if (end > received.length) break
      if (turns.isOver()) {
        this.#isHeld = true
        this.#socket.pause()
        turns.wait(this.#peer, this.#goOn)
        break
      }
      this.#accept(received.subarray(start, end))
      if (this.#hasEnded) return
      at = end
    }
    this.#received = at === received.length ? EMPTY : received.subarray(at)
  }

  readonly #goOn = (): void => {
    this.#isHeld = false
    if (this.#hasEnded) return
    this.#socket.resume()
    this.#read()
    if (this.#failure !== '' && !this.#isHeld) this.#end(this.#failure)
  }

  /** The server has ended the connection. Replies that wait for their turn are accepted first. */
  #endAfterTurn(failure: string): void {
    this.isUsable = false
    if (!this.#isHeld) this.#end(failure)
    else if (this.#failure === '') this.#failure = failure
  }

  #accept(octets: Uint8Array): void {
    const id = (octets[0]! << 8) | octets[1]!
    const waiting = this.#waiting.get(id)
    const query = waiting?.query ?? this.#cancelled.get(id)
    if (query === undefined || !isReplyTo(octets, query)) {
      if (++this.#strays > STRAYS_MAX) this.#end('too many messages answer no query')
      return
    }
    this.isProven = true
    if (waiting === undefined) {
      this.#cancelled.delete(id)
      return
    }
    this.#waiting.delete(id)
    waiting.finish(readReply(octets))
    this.#rest()
  }

  /** Without a query in flight, the connection is kept for later ones, or closed. */
  #rest(): void {
    if (this.#waiting.size > 0) return
    if (this.isUsable) this.#onIdle(this)
    else this.close()
  }

  #end(failure: string): void {
    this.isUsable = false
    this.#hasEnded = true
    this.stopExpiry?.()
    this.#socket.destroy()
    this.#received = EMPTY
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const { finish } of waiting) finish({ failure })
  }
}

/** Sends queries to one server over kept connections, TCP or TLS. */
export class StreamConnections {
  readonly counts = new ReuseCounts()
  readonly #open: OpenStream
  readonly #clock: Clock
  readonly #timers: Timers
  readonly #limits: StreamLimits
  readonly #peer: Peer
  #connections: StreamConnection[] = []
  #isClosed = false

  constructor(open: OpenStream, clock: Clock, timers: Timers, limits: StreamLimits) {
    this.#open = open
    this.#clock = clock
    this.#timers = timers
    this.#limits = limits
    const server = String(servers++)
    this.#peer = { network: server, client: server }
  }

  /** Never rejects. A server may close a kept connection at any time: then a new one is opened. */
  async ask(
    question: UpstreamQuestion,
    timeoutMs: number,
    cancellation?: Cancellation,
  ): Promise<Outcome> {
    const deadlineMs = this.#clock.monotonic() + timeoutMs
    const kept = this.#find()
    if (kept !== undefined) {
      this.counts.hits++
      const outcome = await this.#askOver(kept, question, timeoutMs, cancellation)
      const isCut = 'failure' in outcome && outcome.failure !== TIMED_OUT && !kept.isUsable
      if (!isCut || !kept.isProven || cancellation?.isCancelled === true) return outcome
    }
    this.counts.misses++
    const leftMs = deadlineMs - this.#clock.monotonic()
    if (leftMs <= 0) return { failure: TIMED_OUT }
    const nowMs = this.#clock.monotonic()
    const opened = new StreamConnection(this.#open, this.#peer, nowMs, (connection) =>
      this.#keep(connection),
    )
    this.#connections.push(opened)
    return this.#askOver(opened, question, leftMs, cancellation)
  }

  /** Closes the idle connections now, and the others after their queries. */
  close(): void {
    this.#isClosed = true
    for (const connection of this.#connections.splice(0)) {
      connection.isUsable = false
      if (connection.inFlight === 0) connection.close()
    }
  }

  #askOver(
    connection: StreamConnection,
    question: UpstreamQuestion,
    timeoutMs: number,
    cancellation: Cancellation | undefined,
  ): Promise<Outcome> {
    connection.stopExpiry?.()
    return new Promise((resolve) => {
      const end = (outcome: Outcome): void => {
        cancellation?.set(undefined)
        resolve(outcome)
      }
      const query = connection.ask(question, (outcome) => {
        stopTimer()
        end(outcome)
      })
      const stopTimer = this.#timers.after(timeoutMs, () => {
        connection.giveUp(query)
        end({ failure: TIMED_OUT })
      })
      cancellation?.set(() => {
        stopTimer()
        connection.cancel(query)
        end({ failure: CANCELLED })
      })
    })
  }

  #find(): StreamConnection | undefined {
    this.#connections = this.#connections.filter((connection) => this.#isUsable(connection))
    return this.#connections.find(({ inFlight }) => inFlight < PIPELINED_MAX)
  }

  #isUsable(connection: StreamConnection): boolean {
    const { maxAgeMs } = this.#limits
    const isOld = maxAgeMs > 0 && this.#clock.monotonic() - connection.openedMs >= maxAgeMs
    if (!isOld) return connection.isUsable
    connection.isUsable = false
    if (connection.inFlight === 0) connection.close()
    return false
  }

  #keep(connection: StreamConnection): void {
    const { idleMax, expireMs } = this.#limits
    const idle = this.#connections.filter(({ isUsable, inFlight }) => isUsable && inFlight === 0)
    if (this.#isClosed || (idleMax > 0 && idle.length > idleMax)) connection.close()
    else connection.stopExpiry = this.#timers.after(expireMs, () => connection.close())
  }
}
