import type { Socket } from 'node:net'
import { Protocol } from '../dns/message/query.ts'
import type { ReplyStream } from '../dns/message/reply-stream.ts'
import { type Exchange, type QueryHandler, STREAMED } from './exchange.ts'
import { parsePeerAddress } from './peer-address.ts'
import type { Turns } from './turns.ts'

/** Bounds on what one peer, and all of them, can make the server hold. */
export interface TcpLimits {
  /** Longest wait for the first query, and from the first octet of a message to its last. */
  readonly readMs: number
  /** Longest time that replies may wait for the peer to read them. */
  readonly writeMs: number
  /** Longest time without a query. */
  readonly idleMs: number
  /** Queries per connection; -1 = no limit. */
  readonly queriesMax: number
  /** Queries of one connection that may wait for their answers; more are read later. */
  readonly inFlightMax: number
  /** Octets of replies the peer may leave unread; beyond it the connection is cut. */
  readonly unsentOctetsMax: number
  readonly connectionsMax: number
  /** Of one IPv4 address, or one /64 of IPv6: whoever has one such address has them all. */
  readonly connectionsPerAddressMax: number
  /** Where there are `connectionsMax`, one without a query for longer than this makes room for a new one. */
  readonly sparedMs: number
  /** How long `close` waits for queries in flight. */
  readonly drainMs: number
}

export interface TcpCounters {
  /** Queries that found every exchange taken; their connections are cut. */
  dropped: number
  /** Connections over a limit: refused, or closed to make room. */
  refused: number
  /** Connections cut because the peer did not send or read in time. */
  timedOut: number
  /** Connections cut because the peer left too much unread. */
  overrun: number
  /** Resets and other errors of sockets. */
  errors: number
}

export function createTcpCounters(): TcpCounters {
  return { dropped: 0, refused: 0, timedOut: 0, overrun: 0, errors: 0 }
}

/** A stream, and whom its exchange goes back to. */
interface Streaming {
  readonly handler: QueryHandler
  readonly exchange: Exchange
  readonly stream: ReplyStream
}

const LENGTH_OCTETS = 2
const EMPTY = new Uint8Array(0)

/**
 * One TCP connection: messages with a length in front (RFC 1035 section 4.2.2), many at a time, answered
 * in the order in which the answers come (RFC 7766 section 6.2.1.1). What is read but not yet asked:
 *
 *     #pending:  [ asked ][ length | message ][ length | mess…
 *                0        #at                                 #pending.length
 *
 * Reading stops while too many queries are in flight, the peer does not read its replies, a stream goes
 * out, or it is the turn of others.
 */
export class TcpConnection {
  readonly #socket: Socket
  readonly #limits: TcpLimits
  readonly #counters: TcpCounters
  readonly #currentHandler: () => QueryHandler
  readonly #turns: Turns
  readonly #peerAddress: Uint8Array = new Uint8Array(16)
  readonly #peerFamily: number
  readonly #peerPort: number
  readonly #localAddress: Uint8Array = new Uint8Array(16)
  readonly #localFamily: number
  readonly #localPort: number

  #pending: Uint8Array = EMPTY
  #at = 0
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
  /** Monotonic milliseconds; Infinity = nothing is awaited. */
  #readDeadlineMs: number
  #writeDeadlineMs = Number.POSITIVE_INFINITY
  /** Monotonic milliseconds: when octets came last. */
  #heardMs: number
  #askedMs: number
  /** True while the deadline is for the rest of a message that has begun. */
  #inMessage = false

  constructor(
    socket: Socket,
    limits: TcpLimits,
    counters: TcpCounters,
    currentHandler: () => QueryHandler,
    turns: Turns,
  ) {
    this.#socket = socket
    this.#limits = limits
    this.#counters = counters
    this.#currentHandler = currentHandler
    this.#turns = turns
    this.#peerFamily = parsePeerAddress(socket.remoteAddress ?? '', this.#peerAddress)
    this.#peerPort = socket.remotePort ?? 0
    this.#localFamily = parsePeerAddress(socket.localAddress ?? '', this.#localAddress)
    this.#localPort = socket.localPort ?? 0
    this.#heardMs = performance.now()
    this.#askedMs = this.#heardMs
    this.#readDeadlineMs = this.#heardMs + limits.readMs
    socket.on('data', (chunk: Uint8Array) => this.#receive(chunk))
    socket.on('drain', () => this.#unclog())
    socket.on('end', () => this.finish())
    socket.on('close', () => this.#endStreams())
    socket.on('error', () => {
      counters.errors++
    })
  }

  /** Reads no more queries; ends the connection once those read are answered. */
  finish(): void {
    this.#finishing = true
    this.#ask()
  }

  /** For how long the peer has sent nothing. */
  silentMs(nowMs: number): number {
    return nowMs - this.#heardMs
  }

  /** Monotonic milliseconds: when the last whole query came, or else the connection. */
  get askedMs(): number {
    return this.#askedMs
  }

  /** True while the peer waits for an answer, its answers wait for it, or it is the turn of others. */
  get isBusy(): boolean {
    return this.#inFlight > 0 || this.#isWaiting || this.#socket.writableLength > 0
  }

  destroy(): void {
    this.#socket.destroy()
  }

  /** Cuts the connection if the peer has kept us waiting too long. */
  checkDeadlines(nowMs: number): void {
    if (nowMs < this.#readDeadlineMs && nowMs < this.#writeDeadlineMs) return
    this.#counters.timedOut++
    this.#socket.destroy()
  }

  #receive(chunk: Uint8Array): void {
    if (this.#finishing) return
    this.#heardMs = performance.now()
    const rest = this.#pending.length - this.#at
    if (rest === 0) {
      this.#pending = chunk
    } else {
      const joined = new Uint8Array(rest + chunk.length)
      joined.set(this.#pending.subarray(this.#at))
      joined.set(chunk, rest)
      this.#pending = joined
    }
    this.#at = 0
    this.#ask()
  }

  /** Asks every whole message that was read, as far as the bounds allow, and sees what to await next. */
  #ask(): void {
    this.#socket.cork()
    while (this.#pump() && !this.#isHeld() && this.#hasMessage()) {
      if (this.#mustWait()) break
      const start = this.#at + LENGTH_OCTETS
      const end = start + this.#messageOctets()
      this.#at = end
      this.#inMessage = false
      if (!this.#serve(this.#pending.subarray(start, end))) break
    }
    this.#socket.uncork()
    if (this.#at === this.#pending.length) {
      this.#pending = EMPTY
      this.#at = 0
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
        this.#socket.destroy()
        return false
      }
      if (octets > 0) this.#write(exchange.reply, octets)
      else this.#endStream(this.#streams.shift()!)
    }
    return true
  }

  #endStream({ handler, exchange, stream }: Streaming): void {
    stream.close()
    this.#inFlight--
    handler.release(exchange)
  }

  #endStreams(): void {
    for (const streaming of this.#streams.splice(0)) this.#endStream(streaming)
  }

  /** True if it is the turn of others; then ours comes again. */
  #mustWait(): boolean {
    if (!this.#turns.isOver()) return false
    this.#isWaiting = true
    this.#turns.wait(this.#takeTurn)
    return true
  }

  /** True where the next message has to wait until earlier ones are answered, or is one too many. */
  #isHeld(): boolean {
    const { inFlightMax } = this.#limits
    if (this.#clogged || this.#isWaiting || this.#inFlight >= inFlightMax) return true
    if (this.#streams.length > 0) return true
    return this.#isSpent() || this.#isGone()
  }

  #isSpent(): boolean {
    const { queriesMax } = this.#limits
    return queriesMax >= 0 && this.#queries >= queriesMax
  }

  #isGone(): boolean {
    return this.#socket.destroyed || this.#socket.writableEnded
  }

  #hasMessage(): boolean {
    const octets = this.#pending.length - this.#at
    return octets >= LENGTH_OCTETS && octets >= LENGTH_OCTETS + this.#messageOctets()
  }

  #messageOctets(): number {
    return (this.#pending[this.#at]! << 8) | this.#pending[this.#at + 1]!
  }

  /** False if the connection had to be cut. */
  #serve(packet: Uint8Array): boolean {
    const handler = this.#currentHandler()
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
      // Its messages go out in the next turn of `#ask`.
      if (this.#isGone()) this.#endStreams()
      return
    }
    if (octets > 0 && !this.#isGone()) this.#write(exchange.reply, octets)
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
      this.#socket.destroy()
      return
    }
    if (this.#clogged) return
    this.#clogged = true
    this.#writeDeadlineMs = performance.now() + this.#limits.writeMs
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
    if (idle && (this.#isSpent() || (this.#finishing && !this.#hasMessage()))) {
      this.#end()
      return
    }
    if (this.#isHeld()) {
      this.#readDeadlineMs = Number.POSITIVE_INFINITY
      this.#inMessage = false
      this.#socket.pause()
      return
    }
    if (this.#socket.isPaused()) this.#socket.resume()
    if (this.#pending.length > 0) {
      // Octets that trickle in do not prolong the time that a message may take.
      if (!this.#inMessage) this.#readDeadlineMs = performance.now() + this.#limits.readMs
      this.#inMessage = true
    } else if (this.#inFlight > 0) {
      this.#readDeadlineMs = Number.POSITIVE_INFINITY
    } else if (this.#queries > 0) {
      this.#readDeadlineMs = performance.now() + this.#limits.idleMs
    }
  }

  /** Ends our side; a peer that does not end its own is cut when the write timeout is over. */
  #end(): void {
    this.#finishing = true
    this.#socket.end()
    this.#socket.resume()
    this.#readDeadlineMs = Number.POSITIVE_INFINITY
    this.#writeDeadlineMs = performance.now() + this.#limits.writeMs
  }
}
