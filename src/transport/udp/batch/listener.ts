import { Protocol } from '../../../dns/message/query.ts'
import { Drain } from '../../drain.ts'
import type { Exchange, QueryHandler } from '../../exchange.ts'
import { openHost } from '../../open-host.ts'
import { DRAIN_MS_DEFAULT, type UdpCounters, type UdpListener, type UdpOptions } from '../udp.ts'
import { BATCH } from './layout.ts'
import { type Libc, loadLibc, type Watcher } from './libc.ts'
import { BatchSocket } from './socket.ts'

/** Batches that are answered before the event loop gets to do something else: some milliseconds' work. */
const BATCHES_PER_TURN = 4

const READABLE = { readable: true }
const WRITABLE = { writable: true }

/**
 * `ListenUdp` over recvmmsg and sendmmsg, on the event loop of the calling thread. Rejects too where
 * koffi does not load (see `loadLibc`). `libc` is for tests.
 */
export async function listenBatch(
  options: UdpOptions,
  libc: Libc = loadLibc(),
): Promise<UdpListener> {
  return openHost(options.host, async (host) => {
    const { port, receiveBufferOctets, sendBufferOctets } = options
    const socket = new BatchSocket(libc, { host, port, receiveBufferOctets, sendBufferOctets })
    return new BatchServer(libc, socket, options)
  })
}

/**
 *     readable ─▶ setImmediate ─▶ turn: receive, answer all, flush ─┬─▶ readable again at once, if more waits
 *                                   │ Promise                       └─▶ buffer full: wait until writable
 *                                   ▼
 *                       unit lent ─▶ resolved ─▶ reply ─▶ setImmediate ─▶ flush
 *
 * Watching is level-triggered: what a turn leaves makes the socket readable in the next turn of the loop.
 */
class BatchServer implements UdpListener {
  readonly port: number
  readonly #socket: BatchSocket
  readonly #watcher: Watcher
  readonly #drain: Drain
  readonly #dropped = { dropped: 0, oversize: 0, socketErrors: 0 }
  #handler: QueryHandler
  #closing: Promise<void> | undefined = undefined
  #closed = false
  /** True while the socket's buffer is full: nothing is read until it is writable. */
  #clogged = false
  #turnIsDue = false
  #flushIsDue = false
  readonly #takeTurn = (): void => this.#turn()
  readonly #flushLate = (): void => this.#flushWhatIsLate()
  /** See `Watcher`: schedules only. The check phase follows in the same turn of the loop. */
  readonly #onReady = (): void => {
    if (this.#turnIsDue) return
    this.#turnIsDue = true
    setImmediate(this.#takeTurn)
  }

  constructor(libc: Libc, socket: BatchSocket, options: UdpOptions) {
    this.#socket = socket
    this.port = socket.port
    this.#handler = options.handler
    this.#drain = new Drain(options.drainMs ?? DRAIN_MS_DEFAULT)
    this.#watcher = libc.watch(socket.fd, READABLE, this.#onReady)
  }

  get counters(): UdpCounters {
    return { ...this.#dropped, sendErrors: this.#socket.sendErrors }
  }

  setHandler(handler: QueryHandler): void {
    this.#handler = handler
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    // Watched no more for queries, which would keep the loop busy for nothing.
    this.#watcher.stop()
    await this.#drain.wait()
    this.#socket.flush()
    this.#closed = true
    this.#watcher.close()
    this.#socket.close()
  }

  #turn(): void {
    this.#turnIsDue = false
    if (this.#closing !== undefined) return
    if (this.#clogged && !this.#unclog()) return
    for (let batch = 0; batch < BATCHES_PER_TURN; batch++) {
      const count = this.#socket.receive()
      if (count === -1) this.#dropped.socketErrors++
      for (let slot = 0; slot < count; slot++) this.#serve(slot)
      if (!this.#socket.flush()) {
        this.#clog()
        return
      }
      if (count < BATCH) return
    }
  }

  #serve(slot: number): void {
    const socket = this.#socket
    if (socket.isCut(slot)) {
      this.#dropped.oversize++
      return
    }
    const handler = this.#handler
    const exchange = socket.canLend ? handler.acquire() : undefined
    if (exchange === undefined) {
      this.#dropped.dropped++
      return
    }
    this.#drain.enter()
    exchange.query.protocol = Protocol.Udp
    socket.describe(slot, exchange.query)
    const octets = handler.serve(exchange)
    if (typeof octets === 'number') {
      if (octets > 0) socket.reply(socket.unitOf(slot), exchange.reply, octets)
      this.#release(handler, exchange)
      return
    }
    this.#awaitReply(handler, exchange, socket.lend(slot), octets)
  }

  #awaitReply(
    handler: QueryHandler,
    exchange: Exchange,
    unit: number,
    octets: Promise<number>,
  ): void {
    void octets.then((later) => {
      if (later > 0) this.#replyLate(unit, exchange, later)
      this.#socket.giveBack(unit)
      this.#release(handler, exchange)
    })
  }

  #replyLate(unit: number, exchange: Exchange, octets: number): void {
    if (this.#closed) {
      this.#socket.sendErrors++
      return
    }
    this.#socket.reply(unit, exchange.reply, octets)
    if (this.#flushIsDue || this.#clogged) return
    // What else is answered in this turn of the loop goes out with it.
    this.#flushIsDue = true
    setImmediate(this.#flushLate)
  }

  #flushWhatIsLate(): void {
    this.#flushIsDue = false
    if (!this.#closed && !this.#clogged && !this.#socket.flush()) this.#clog()
  }

  #clog(): void {
    this.#clogged = true
    if (this.#closing === undefined) this.#watcher.start(WRITABLE, this.#onReady)
  }

  /** False if the socket's buffer is still full. */
  #unclog(): boolean {
    if (!this.#socket.flush()) return false
    this.#clogged = false
    this.#watcher.start(READABLE, this.#onReady)
    return true
  }

  #release(handler: QueryHandler, exchange: Exchange): void {
    handler.release(exchange)
    this.#drain.leave()
  }
}
