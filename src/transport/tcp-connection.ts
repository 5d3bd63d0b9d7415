import type { Socket } from 'node:net'
import { Protocol } from '../dns/message/query.ts'
import type { ReplyStream } from '../dns/message/reply-stream.ts'
import type { EventLoopBudget } from './event-loop-budget.ts'
import { type Exchange, type QueryHandler, STREAMED } from './exchange.ts'
import { descriptorOf, type HandedOver, type HandedState, type Handover } from './handover.ts'
import { type Peer, parsePeerAddress } from './peer-address.ts'
import type { Holder } from './places.ts'
import type { TcpCounters } from './tcp-counters.ts'

/** Bounds on what one peer, and all of them, can make the server hold. */
export interface TcpLimits {
  /** Longest wait for the first query, and from the first octet of a message to its last. */
  readonly readMs: number
  /** Longest time that replies may wait for the peer to read them. */
  readonly writeMs: number
  /** As `writeMs` for a reply of many messages, if that is longer. */
  readonly streamWriteMs: number
  /** Longest time without a query. */
  readonly idleMs: number
  /** Queries per connection; -1 = no limit. */
  readonly queriesMax: number
  /** Queries of one connection that may wait for their answers; more are read later. */
  readonly inFlightMax: number
  /** Octets of replies the peer may leave unread; beyond it the connection is cut. */
  readonly unsentOctetsMax: number
  readonly connectionsMax: number
  /** Connections of one client (see `Peer`). */
  readonly connectionsPerAddressMax: number
  /** Connections with a reply of many messages under way; each holds an exchange until its end. */
  readonly streamsMax: number
  /** Octets of the shortest message; the first that is shorter ends the connection. */
  readonly messageOctetsMin: number
  /** Octets of the longest message; the first that is longer ends the connection before it is read. */
  readonly messageOctetsMax: number
  /** A connection counts as idle when its last query, or its start, is longer ago than this. */
  readonly sparedMs: number
  /** While closing: how long a connection must have been silent to be ended. */
  readonly quietMs: number
  /** How long `close` waits for clients to end their connections or to be silent, and for queries in flight. */
  readonly drainMs: number
}

/** A stream, and whom its exchange goes back to. */
interface Streaming {
  readonly handler: QueryHandler
  readonly exchange: Exchange
  readonly stream: ReplyStream
}

/** What a connection knows of its listener. */
export interface TcpHost {
  readonly counters: TcpCounters
  readonly turns: EventLoopBudget
  currentHandler(): QueryHandler
  /** The first stream of a connection begins. May destroy the connection. */
  beginStreams(connection: TcpConnection, peer: Peer): void
  /** The last one is over. */
  endStreams(connection: TcpConnection): void
}

const LENGTH_OCTETS = 2
const EMPTY = new Uint8Array(0)
/** What is read is joined in a buffer of at least so many octets. */
const JOINED_OCTETS_MIN = 128

/** Precedences of `Holder`: above all times in milliseconds, so that one kind goes before the other. */
const IDLE = 1e13
/** A connection that is about to be opened goes between those that are idle and those that are not. */
export const NEWCOMER = 2e13
const BUSY = 4e13

/**
 * One TCP connection: messages with a length in front (RFC 1035 section 4.2.2), many at a time, answered
 * in the order in which the answers come (RFC 7766 section 6.2.1.1). What is read but not yet asked:
 *
 *     #pending:  [ asked ][ length | message ][ length | mess…    ]
 *                0        #at                                 #end
 *
 * Reading stops while too many queries are in flight, the peer does not read its replies, a stream goes
 * out, or it is the turn of others.
 */
export class TcpConnection implements Holder {
  readonly #socket: Socket
  readonly #limits: TcpLimits
  readonly #host: TcpHost
  readonly #counters: TcpCounters
  readonly #turns: EventLoopBudget
  readonly #peer: Peer
  readonly #peerAddress: Uint8Array = new Uint8Array(16)
  readonly #peerFamily: number
  readonly #peerPort: number
  readonly #localAddress: Uint8Array = new Uint8Array(16)
  readonly #localFamily: number
  readonly #localPort: number

  #pending: Uint8Array = EMPTY
  #at = 0
  #end = 0
  #inFlight = 0
  #queries = 0
  /** Replies of many messages: the first is going out. */
  #streams: Streaming[] = []
  /** True between a write that the kernel did not take at once and `drain`. */
  #clogged = false
  /** True until our next turn. */
  #isWaiting = false
  readonly #takeTurn = (): void => {
    this.#isWaiting = false
    this.#ask()
  }
  /** No more queries are read; the connection ends once its answers are out. */
  #finishing = false
  /** Another process is about to serve the connection: no more queries are read. */
  #isMoving = false
  /** The listener closes: replies ask the client to end the connection. */
  #isLeaving = false
  /** The connection ends behind the next answer after which nothing waits. */
  #endsWithAnswer = false
  #hasAnswered = false
  /** Monotonic milliseconds; Infinity = nothing is awaited. */
  #readDeadlineMs: number
  #writeDeadlineMs = Number.POSITIVE_INFINITY
  readonly #openedMs: number
  #cloggedMs = 0
  /** Monotonic milliseconds: when octets came last. */
  #heardMs: number
  #askedMs: number
  /** True while the deadline is for the rest of a message that has begun. */
  #inMessage = false

  constructor(socket: Socket, peer: Peer, limits: TcpLimits, host: TcpHost) {
    this.#socket = socket
    this.#peer = peer
    this.#limits = limits
    this.#host = host
    this.#counters = host.counters
    this.#turns = host.turns
    this.#peerFamily = parsePeerAddress(socket.remoteAddress ?? '', this.#peerAddress)
    this.#peerPort = socket.remotePort ?? 0
    this.#localFamily = parsePeerAddress(socket.localAddress ?? '', this.#localAddress)
    this.#localPort = socket.localPort ?? 0
    this.#openedMs = performance.now()
    this.#heardMs = this.#openedMs
    this.#askedMs = this.#openedMs
    this.#readDeadlineMs = this.#heardMs + limits.readMs
    socket.on('data', (chunk: Uint8Array) => this.#receive(chunk))
    socket.on('drain', () => this.#unclog())
    socket.on('end', () => this.finish())
    socket.on('close', () => this.#endStreams())
    socket.on('error', () => {
      host.counters.errors++
    })
  }

  /** Reads no more queries; ends the connection once those read are answered. */
  finish(): void {
    this.#finishing = true
    this.#ask()
  }

  /** Goes on where another process has handed the connection over. */
  adopt({ queries, pending }: HandedState): void {
    this.#queries = queries
    if (pending.length > 0) this.#receive(pending)
    else this.#await()
  }

  /** Reads no more queries, so that the connection can be handed over once those read are answered; false: reads on. */
  setMoving(isMoving: boolean): void {
    this.#isMoving = isMoving
    this.#ask()
  }

  /** Hands the connection over to another process. */
  handOver(handover: Handover): HandedOver {
    const socket = this.#socket
    const fd = descriptorOf(socket)
    if (fd === undefined || this.#finishing || this.#isGone()) return 'never'
    if (this.#inFlight > 0 || socket.writableLength > 0) return 'busy'
    // What Node.js has read after the pause comes as `data`.
    while (socket.readableLength > 0 && socket.read() !== null);
    const pending = this.#pending.subarray(this.#at, this.#end)
    const result = handover.send(fd, { queries: this.#queries, pending })
    if (result === 'done') socket.destroy()
    return result
  }

  /** From now on replies ask the client to end the connection (RFC 7828 section 3.3.2). */
  leave(): void {
    this.#isLeaving = true
  }

  /** Ends the connection behind the next answer: a client that pauses then has no query on its way. */
  endWithAnswer(): void {
    if (this.#endsWithAnswer) return
    this.#endsWithAnswer = true
    this.#hasAnswered = false
  }

  /** True if the client has been silent for so long that it has likely no query on its way. */
  isQuiet(nowMs: number): boolean {
    const waits = this.#inFlight > 0 || this.#isWaiting || this.#socket.writableLength > 0
    return !waits && nowMs - this.#heardMs >= this.#limits.quietMs
  }

  /**
   * Clogged connections are ended first, the one that is clogged for the longest before others; then those that are
   * idle, the one without a query for the longest before others; then the others, the youngest before the older.
   */
  precedence(nowMs: number): number {
    if (this.#clogged) return this.#cloggedMs
    const isIdle = this.#inFlight === 0 && !this.#isWaiting
    if (isIdle && nowMs - this.#askedMs > this.#limits.sparedMs) return IDLE + this.#askedMs
    return BUSY - this.#openedMs
  }

  destroy(): void {
    this.#cut()
    // Not only once it is closed: others wait for what the streams hold.
    this.#endStreams()
  }

  /** Cuts the connection if the peer has kept us waiting too long, or if a stream has been ended for another. */
  checkDeadlines(nowMs: number): void {
    const isLate = nowMs >= this.#readDeadlineMs || nowMs >= this.#writeDeadlineMs
    if (!isLate && !this.#streams.some(({ stream }) => stream.isBroken)) return
    this.#counters.timedOut++
    this.#cut()
  }

  /**
   * Resets the connection if the peer has left replies unread. After an ordinary close the kernel keeps the replies in its
   * send buffer, up to 4 MiB (`tcp_wmem`), and tries to send them for minutes.
   */
  #cut(): void {
    if (this.#socket.writableLength > 0) this.#socket.resetAndDestroy()
    else this.#socket.destroy()
  }

  #receive(chunk: Uint8Array): void {
    if (this.#finishing) return
    this.#heardMs = performance.now()
    if (this.#end === this.#at) {
      this.#pending = chunk
      this.#at = 0
      this.#end = chunk.length
    } else {
      this.#join(chunk)
    }
    this.#ask()
  }

  /** Puts `chunk` behind what is read; queries in flight keep what they point to. */
  #join(chunk: Uint8Array): void {
    const rest = this.#end - this.#at
    const octets = rest + chunk.length
    if (this.#end + chunk.length > this.#pending.length) {
      // Twice the room: a message that comes octet by octet is not copied for each of them.
      const joined = new Uint8Array(Math.max(JOINED_OCTETS_MIN, 2 * octets))
      joined.set(this.#pending.subarray(this.#at, this.#end))
      this.#pending = joined
      this.#at = 0
      this.#end = rest
    }
    this.#pending.set(chunk, this.#end)
    this.#end += chunk.length
  }

  /** Asks every whole message that was read, as far as the bounds allow, and sees what to await next. */
  #ask(): void {
    this.#socket.cork()
    while (this.#pump() && !this.#isHeld() && this.#hasLength()) {
      if (!this.#hasGoodLength()) {
        this.#counters.malformed++
        this.destroy()
        break
      }
      if (!this.#hasMessage() || this.#mustWait()) break
      const start = this.#at + LENGTH_OCTETS
      const end = start + this.#messageOctets()
      this.#at = end
      this.#inMessage = false
      if (!this.#serve(this.#pending.subarray(start, end))) break
    }
    this.#socket.uncork()
    if (this.#at === this.#end) {
      this.#pending = EMPTY
      this.#at = 0
      this.#end = 0
    }
    this.#await()
  }

  /** Sends what the peer takes of the stream under way; false if there is more of it. */
  #pump(): boolean {
    for (let streaming = this.#streams[0]; streaming !== undefined; streaming = this.#streams[0]) {
      if (this.#clogged || this.#isWaiting || this.#isGone() || this.#mustWait()) return false
      const { stream, exchange } = streaming
      const octets = stream.next(exchange.reply)
      if (stream.isBroken) {
        this.destroy()
        return false
      }
      if (octets > 0) this.#write(exchange.reply, octets)
      else this.#endStream()
    }
    return true
  }

  /** Ends the first. */
  #endStream(): void {
    const { handler, exchange, stream } = this.#streams.shift()!
    stream.close()
    this.#inFlight--
    this.#hasAnswered = true
    handler.release(exchange)
    if (this.#streams.length === 0) this.#host.endStreams(this)
  }

  #endStreams(): void {
    while (this.#streams.length > 0) this.#endStream()
  }

  /** True if it is the turn of others; then ours comes again. */
  #mustWait(): boolean {
    if (!this.#turns.isOver()) return false
    this.#isWaiting = true
    this.#turns.wait(this.#peer, this.#takeTurn)
    return true
  }

  /** True where the next message has to wait until earlier ones are answered, or is one too many. */
  #isHeld(): boolean {
    const { inFlightMax } = this.#limits
    if (this.#clogged || this.#isWaiting || this.#inFlight >= inFlightMax) return true
    if (this.#streams.length > 0 || this.#isMoving) return true
    return this.#isSpent() || this.#isGone()
  }

  #isSpent(): boolean {
    const { queriesMax } = this.#limits
    return queriesMax >= 0 && this.#queries >= queriesMax
  }

  #isGone(): boolean {
    return this.#socket.destroyed || this.#socket.writableEnded
  }

  #hasLength(): boolean {
    return this.#end - this.#at >= LENGTH_OCTETS
  }

  #hasMessage(): boolean {
    return this.#hasLength() && this.#end - this.#at >= LENGTH_OCTETS + this.#messageOctets()
  }

  #hasGoodLength(): boolean {
    const { messageOctetsMin, messageOctetsMax } = this.#limits
    const octets = this.#messageOctets()
    return octets >= messageOctetsMin && octets <= messageOctetsMax
  }

  #messageOctets(): number {
    return (this.#pending[this.#at]! << 8) | this.#pending[this.#at + 1]!
  }

  /** False if the connection had to be cut. */
  #serve(packet: Uint8Array): boolean {
    const handler = this.#host.currentHandler()
    const exchange = handler.acquire()
    if (exchange === undefined) {
      this.#counters.dropped++
      this.#socket.destroy()
      return false
    }
    this.#queries++
    this.#inFlight++
    this.#askedMs = this.#heardMs
    this.#describe(exchange, packet)
    const octets = handler.serve(exchange)
    if (typeof octets === 'number') this.#reply(handler, exchange, octets)
    else void octets.then((later) => this.#replyLater(handler, exchange, later))
    return true
  }

  #describe(exchange: Exchange, packet: Uint8Array): void {
    const query = exchange.query
    query.packet = packet
    query.packetOctets = packet.length
    query.protocol = Protocol.Tcp
    query.connectionEnds = this.#isLeaving
    query.peerAddress.set(this.#peerAddress)
    query.peerFamily = this.#peerFamily
    query.peerPort = this.#peerPort
    query.localAddress = this.#localAddress
    query.localFamily = this.#localFamily
    query.localPort = this.#localPort
  }

  #replyLater(handler: QueryHandler, exchange: Exchange, octets: number): void {
    this.#reply(handler, exchange, octets)
    this.#ask()
  }

  #reply(handler: QueryHandler, exchange: Exchange, octets: number): void {
    const { stream } = exchange
    if (octets === STREAMED && stream !== undefined) {
      this.#streams.push({ handler, exchange, stream })
      if (this.#streams.length === 1) this.#host.beginStreams(this, this.#peer)
      // Its messages go out in the next turn of `#ask`.
      if (this.#isGone()) this.#endStreams()
      return
    }
    if (octets > 0 && !this.#isGone()) this.#write(exchange.reply, octets)
    this.#hasAnswered = true
    this.#inFlight--
    handler.release(exchange)
  }

  #write(reply: Uint8Array, octets: number): void {
    const frame = new Uint8Array(LENGTH_OCTETS + octets)
    frame[0] = octets >> 8
    frame[1] = octets & 0xff
    frame.set(reply.subarray(0, octets), LENGTH_OCTETS)
    if (this.#socket.write(frame)) return
    if (this.#socket.writableLength > this.#limits.unsentOctetsMax) {
      this.#counters.overrun++
      this.#cut()
      return
    }
    if (this.#clogged) return
    this.#clogged = true
    this.#cloggedMs = performance.now()
    const { writeMs, streamWriteMs } = this.#limits
    const patienceMs = this.#streams.length > 0 ? Math.max(writeMs, streamWriteMs) : writeMs
    this.#writeDeadlineMs = this.#cloggedMs + patienceMs
  }

  #unclog(): void {
    this.#clogged = false
    this.#writeDeadlineMs = Number.POSITIVE_INFINITY
    this.#ask()
  }

  /** Sets what comes next: more of a message, another query, room to write, or the end. */
  #await(): void {
    if (this.#isGone()) return
    const idle = this.#inFlight === 0 && !this.#clogged
    if (idle && (this.#isSpent() || (this.#isEnding() && !this.#hasMessage()))) {
      this.#shutDown()
      return
    }
    if (this.#isHeld()) {
      this.#readDeadlineMs = Number.POSITIVE_INFINITY
      this.#inMessage = false
      this.#socket.pause()
      return
    }
    if (this.#socket.isPaused()) this.#socket.resume()
    if (this.#end > 0) {
      // Octets that trickle in do not prolong the time that a message may take.
      if (!this.#inMessage) this.#readDeadlineMs = performance.now() + this.#limits.readMs
      this.#inMessage = true
    } else if (this.#inFlight > 0) {
      this.#readDeadlineMs = Number.POSITIVE_INFINITY
    } else if (this.#queries > 0) {
      this.#readDeadlineMs = performance.now() + this.#limits.idleMs
    }
  }

  #isEnding(): boolean {
    if (this.#finishing) return true
    return this.#endsWithAnswer && this.#hasAnswered && !this.#isWaiting && this.#end === this.#at
  }

  /** Ends our side; a peer that does not end its own is cut when the write timeout is over. */
  #shutDown(): void {
    this.#finishing = true
    this.#socket.end()
    this.#socket.resume()
    this.#readDeadlineMs = Number.POSITIVE_INFINITY
    this.#writeDeadlineMs = performance.now() + this.#limits.writeMs
  }
}
