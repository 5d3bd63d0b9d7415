import type { Socket } from 'node:net'
import type { EventLoopBudget } from '../base/event-loop-budget.ts'
import type { Holder, Peer } from '../base/places.ts'
import { Protocol } from '../dns/message/query.ts'
import type { ReplyStream } from '../dns/message/reply-stream.ts'
import { ConnectionEnds, NEEDS_MORE, REFUSED, type StreamProxy } from './connection-ends.ts'
import { type Exchange, type QueryHandler, STREAMED } from './exchange.ts'
import {
  descriptorOf,
  type HandedOver,
  type HandedState,
  type Handover,
} from './handover/handover.ts'
import type { TcpCounters } from './tcp-counters.ts'
import type { TcpLimits } from './tcp-limits.ts'

/** A stream, and the handler that its exchange is returned to. */
interface Streaming {
  readonly handler: QueryHandler
  readonly exchange: Exchange
  readonly stream: ReplyStream
}

/** What a connection needs from its listener. */
export interface TcpHost {
  readonly counters: TcpCounters
  readonly turns: EventLoopBudget
  currentHandler(): QueryHandler
  /** How connections that open now treat PROXY headers; undefined = they have none. */
  readonly proxy: StreamProxy | undefined
  /** Gives a connection, whose client is `peer`, a place among those of that client. May destroy the connection. */
  move(connection: TcpConnection, peer: Peer): void
  /** The first stream of a connection begins. May destroy the connection. */
  beginStreams(connection: TcpConnection, peer: Peer): void
  endStreams(connection: TcpConnection): void
  /** Notes that octets wait until their peer reads, or no longer. May cut a connection: the one with the most. */
  noteUnsent(octets: number): void
}

const LENGTH_OCTETS = 2
const EMPTY = new Uint8Array(0)
/** Smallest buffer for joining what is read, in octets. */
const JOINED_OCTETS_MIN = 128

/** Precedences of `Holder`: above all times in milliseconds, so that each kind ranks before the next one. */
const IDLE = 1e13
/** A connection that is about to be opened ranks between idle connections and the others. */
export const NEWCOMER = 2e13
const BUSY = 4e13

/**
 * One TCP connection: messages with a length in front (RFC 1035 section 4.2.2), many at a time.
 * Replies are sent as soon as they are ready (RFC 7766 section 6.2.1.1). Octets that were read but
 * not served yet:
 *
 *     #pending:  [ asked ][ length | message ][ length | mess…    ]
 *                0        #at                                 #end
 *
 * Reading stops while too many queries are in flight, while the peer does not read its replies,
 * during a stream, and during the turns of other connections.
 */
export class TcpConnection implements Holder {
  readonly #socket: Socket
  readonly #limits: TcpLimits
  readonly #host: TcpHost
  readonly #counters: TcpCounters
  readonly #turns: EventLoopBudget
  readonly #ends: ConnectionEnds

  #pending: Uint8Array = EMPTY
  #at = 0
  #end = 0
  #inFlight = 0
  #queries = 0
  /** Replies of many messages. The first one is being sent. */
  #streams: Streaming[] = []
  /** True after a write that the kernel did not accept at once, until `drain`. */
  #clogged = false
  /** Octets of replies that wait until the peer reads earlier ones. */
  #unsent = 0
  /** True until our next turn. */
  #isWaiting = false
  readonly #takeTurn = (): void => {
    this.#isWaiting = false
    this.#ask()
  }
  /** No more queries are read. The connection ends once its replies are sent. */
  #finishing = false
  /** Another process is about to serve the connection: no more queries are read. */
  #isMoving = false
  /** The listener closes: replies ask the client to end the connection. */
  #isLeaving = false
  /** The connection ends after the next reply that leaves no query in flight. */
  #endsWithAnswer = false
  #hasAnswered = false
  /** Monotonic milliseconds; Infinity = no deadline. */
  #readDeadlineMs: number
  #writeDeadlineMs = Number.POSITIVE_INFINITY
  readonly #openedMs: number
  #cloggedMs = 0
  /** Monotonic milliseconds of the last octets received. */
  #heardMs: number
  #askedMs: number
  /** True while the deadline is for the rest of a message that has begun. */
  #inMessage = false

  constructor(socket: Socket, peer: Peer, limits: TcpLimits, host: TcpHost) {
    this.#socket = socket
    this.#limits = limits
    this.#host = host
    this.#counters = host.counters
    this.#turns = host.turns
    this.#ends = new ConnectionEnds(socket, peer, host.proxy)
    this.#openedMs = performance.now()
    this.#heardMs = this.#openedMs
    this.#askedMs = this.#openedMs
    this.#readDeadlineMs = this.#heardMs + limits.readMs
    socket.on('data', (chunk: Uint8Array) => this.#receive(chunk))
    socket.on('drain', () => this.#unclog())
    socket.on('end', () => this.finish())
    socket.on('close', () => {
      this.#noteUnsent(0)
      this.#endStreams()
    })
    socket.on('error', () => {
      host.counters.errors++
    })
  }

  /** Stops reading queries, and ends the connection once those read are answered. */
  finish(): void {
    this.#finishing = true
    this.#ask()
  }

  /** Continues a connection that another process has handed over. */
  adopt({ queries, header, pending }: HandedState): void {
    this.#queries = queries
    if (queries > 0 || header.length > 0) this.#ends.awaitsHeader = false
    if (header.length > 0) {
      this.#ends.adopt(header)
      this.#host.move(this, this.#ends.peer)
    }
    if (pending.length > 0) this.#receive(pending)
    else this.#await()
  }

  /** True: reads no queries, so that the connection can be handed over once those read are answered. */
  setMoving(isMoving: boolean): void {
    this.#isMoving = isMoving
    this.#ask()
  }

  /** Undefined once the connection is closed. */
  get descriptor(): number | undefined {
    return descriptorOf(this.#socket)
  }

  /** Hands the connection over to another process. */
  handOver(handover: Handover): HandedOver {
    const socket = this.#socket
    const fd = this.descriptor
    if (fd === undefined || this.#finishing || this.#isGone()) return 'never'
    if (this.#inFlight > 0 || socket.writableLength > 0) return 'busy'
    // Octets that Node.js reads after the pause arrive as `data`.
    while (socket.readableLength > 0 && socket.read() !== null);
    const pending = this.#pending.subarray(this.#at, this.#end)
    const header = this.#ends.composeHeader()
    const result = handover.send(fd, { queries: this.#queries, header, pending })
    if (result === 'done') socket.destroy()
    return result
  }

  /** From now on replies ask the client to end the connection (RFC 7828 section 3.3.2). */
  leave(): void {
    this.#isLeaving = true
  }

  /** Ends the connection after the next reply: a client that pauses then has no query in flight. */
  endWithAnswer(): void {
    if (this.#endsWithAnswer) return
    this.#endsWithAnswer = true
    this.#hasAnswered = false
  }

  /** True if the client has been silent for so long that it likely has no query in flight. */
  isQuiet(nowMs: number): boolean {
    const waits = this.#inFlight > 0 || this.#isWaiting || this.#socket.writableLength > 0
    return !waits && nowMs - this.#heardMs >= this.#limits.quietMs
  }

  /**
   * Clogged connections rank first, the one that is clogged for the longest before others. Then
   * idle ones, the one without a query for the longest before others. Then all others, younger ones
   * before older ones.
   */
  precedence(nowMs: number): number {
    if (this.#clogged) return this.#cloggedMs
    const isIdle = this.#inFlight === 0 && !this.#isWaiting
    if (isIdle && nowMs - this.#askedMs > this.#limits.sparedMs) return IDLE + this.#askedMs
    return BUSY - this.#openedMs
  }

  get unsentOctets(): number {
    return this.#unsent
  }

  /** Cuts the connection because its peer leaves too much unread. */
  overrun(): void {
    this.#counters.overrun++
    this.#cut()
  }

  destroy(): void {
    this.#cut()
    // Here and not on `close`, because other connections wait for what the streams hold.
    this.#endStreams()
  }

  /** Cuts the connection if the peer missed a deadline, or if a stream was ended to make room for another. */
  checkDeadlines(nowMs: number): void {
    const isLate = nowMs >= this.#readDeadlineMs || nowMs >= this.#writeDeadlineMs
    if (!isLate && !this.#streams.some(({ stream }) => stream.isBroken)) return
    this.#counters.timedOut++
    this.#cut()
  }

  /**
   * Resets the connection if the peer has left replies unread. After an ordinary close the kernel keeps the replies
   * in its send buffer, and tries to send them for minutes.
   */
  #cut(): void {
    if (this.#socket.writableLength > 0) this.#socket.resetAndDestroy()
    else this.#socket.destroy()
    this.#noteUnsent(0)
  }

  #noteUnsent(octets: number): void {
    const more = octets - this.#unsent
    this.#unsent = octets
    this.#host.noteUnsent(more)
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

  /** Appends `chunk` to what was read. Queries in flight keep the buffer that they refer to. */
  #join(chunk: Uint8Array): void {
    const rest = this.#end - this.#at
    const octets = rest + chunk.length
    if (this.#end + chunk.length > this.#pending.length) {
      // Doubles the room, so that a message that arrives octet by octet is not copied for each of them.
      const joined = new Uint8Array(Math.max(JOINED_OCTETS_MIN, 2 * octets))
      joined.set(this.#pending.subarray(this.#at, this.#end))
      this.#pending = joined
      this.#at = 0
      this.#end = rest
    }
    this.#pending.set(chunk, this.#end)
    this.#end += chunk.length
  }

  /** Serves every complete message that was read, as far as the bounds allow, and sets the next deadline. */
  #ask(): void {
    if (this.#ends.awaitsHeader) this.#readHeader()
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

  /** Skips the PROXY header, once it is whole. */
  #readHeader(): void {
    const octets = this.#ends.readHeader(this.#pending, this.#at, this.#end)
    if (octets === NEEDS_MORE) return
    if (octets === REFUSED) {
      this.#counters.malformed++
      this.destroy()
      return
    }
    this.#at += octets
    if (octets > 0) this.#host.move(this, this.#ends.peer)
  }

  /** Sends as many messages of the current stream as the peer accepts. Returns false if more are left. */
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

  /** Ends the first stream. */
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

  /** Returns true if other connections have their turn. This one then waits for its next turn. */
  #mustWait(): boolean {
    if (!this.#turns.isOver()) return false
    this.#isWaiting = true
    this.#turns.wait(this.#ends.peer, this.#takeTurn)
    return true
  }

  /** True if the next message has to wait until earlier ones are answered, or exceeds the limit of queries. */
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
    return !this.#ends.awaitsHeader && this.#end - this.#at >= LENGTH_OCTETS
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

  /** Returns false if the connection had to be cut. */
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
    query.packetAt = -1
    query.packetOctets = packet.length
    query.protocol = Protocol.Tcp
    query.connectionEnds = this.#isLeaving
    this.#ends.describe(query)
  }

  #replyLater(handler: QueryHandler, exchange: Exchange, octets: number): void {
    this.#reply(handler, exchange, octets)
    this.#ask()
  }

  #reply(handler: QueryHandler, exchange: Exchange, octets: number): void {
    const { stream } = exchange
    if (octets === STREAMED && stream !== undefined) {
      this.#streams.push({ handler, exchange, stream })
      if (this.#streams.length === 1) this.#host.beginStreams(this, this.#ends.peer)
      // The next turn of `#ask` sends its messages.
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
    this.#noteUnsent(this.#socket.writableLength)
    if (this.#unsent > this.#limits.unsentOctetsMax) this.overrun()
    if (this.#clogged || this.#isGone()) return
    this.#clogged = true
    this.#cloggedMs = performance.now()
    const { writeMs, streamWriteMs } = this.#limits
    const patienceMs = this.#streams.length > 0 ? Math.max(writeMs, streamWriteMs) : writeMs
    this.#writeDeadlineMs = this.#cloggedMs + patienceMs
  }

  #unclog(): void {
    this.#clogged = false
    this.#noteUnsent(0)
    this.#writeDeadlineMs = Number.POSITIVE_INFINITY
    this.#ask()
  }

  /** Sets what the connection waits for: the rest of a message, another query, room to write, or the end. */
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
      // Octets that arrive slowly do not extend the time limit of a message.
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

  /** Ends our side. A peer that does not end its side is cut after the write timeout. */
  #shutDown(): void {
    this.#finishing = true
    this.#socket.end()
    this.#socket.resume()
    this.#readDeadlineMs = Number.POSITIVE_INFINITY
    this.#writeDeadlineMs = performance.now() + this.#limits.writeMs
  }
}
