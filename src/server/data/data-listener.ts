import { setTimeout as delay } from 'node:timers/promises'
import { Protocol } from '../../dns/message/query.ts'
import { Drain } from '../../transport/drain.ts'
import type { Exchange, QueryHandler } from '../../transport/exchange.ts'
import { isPortOwn } from '../../transport/own-ports.ts'
import { isInUse } from '../../transport/sockaddr.ts'
import type { Libc } from '../../transport/udp/batch/libc.ts'
import { LOOP_COUNTS, LoopCount } from '../../transport/udp/batch/loop.ts'
import { BatchSocket } from '../../transport/udp/batch/socket.ts'
import {
  DRAIN_MS_DEFAULT,
  RECEIVE_BUFFER_OCTETS,
  SEND_BUFFER_OCTETS,
  type UdpCounters,
  type UdpListener,
} from '../../transport/udp/udp.ts'
import type { DataSocket } from './messages.ts'
import type { PacketLosses } from './packet-losses.ts'

/** More than enough time for the kernel to put a datagram into the socket that it chose for it. */
const RETIRE_MS = 10

/** One socket of an address on the control thread, which opens and closes it and sends late replies. */
interface Opened {
  readonly socket: BatchSocket
  readonly counts: Float64Array
}

interface DataListenerOptions {
  /** Address of the plan: data threads identify the plan by it. */
  readonly address: string
  readonly host: string
  readonly port: number
  /** Answers the queries that data threads hand over. */
  readonly handler: QueryHandler
  /** True = another process, which is about to end, may have the address too. */
  readonly takesOver: boolean
  /** How long `close` waits for late replies; default 5 s. */
  readonly drainMs?: number
  /**
   * Makes data threads stop serving these sockets. Resolves once all queries that they received are
   * answered.
   */
  readonly detach: (fds: readonly number[]) => Promise<void>
  /** Called first when the listener closes. */
  readonly onClosing?: () => void
  readonly onClosed: () => void
}

/** The UDP sockets of one address: data thread n serves socket n. */
export class DataListener implements UdpListener {
  readonly port: number
  readonly #libc: Libc
  readonly #options: DataListenerOptions
  readonly #drain: Drain
  readonly #opened: Opened[] = []
  /** Sockets that are being closed. Queries that threads handed over from them are still answered. */
  readonly #leaving = new Set<Opened>()
  /** Counts of closed sockets. */
  readonly #past = new Float64Array(LOOP_COUNTS)
  #pastUnbuffered = 0
  #handler: QueryHandler
  #closing: Promise<void> | undefined
  /** Sockets with late replies that are not sent yet. */
  readonly #unsent = new Set<BatchSocket>()
  readonly #flush = (): void => this.#sendLate()

  /** Opens one socket. Throws the system's error if the address is not available. */
  constructor(libc: Libc, options: DataListenerOptions) {
    this.#libc = libc
    this.#options = options
    this.#handler = options.handler
    this.#drain = new Drain(options.drainMs ?? DRAIN_MS_DEFAULT)
    this.port = this.#open(options.takesOver ? options.port : this.#checkFree())
  }

  get counters(): UdpCounters & { readonly late: number } {
    const total = Float64Array.from(this.#past)
    for (const { counts, socket } of this.#all()) {
      for (let i = 0; i < LOOP_COUNTS; i++) total[i]! += counts[i]!
      total[LoopCount.SendErrors]! += socket.sendErrors
    }
    return {
      dropped: total[LoopCount.Dropped]!,
      sendErrors: total[LoopCount.SendErrors]!,
      socketErrors: total[LoopCount.SocketErrors]!,
      late: total[LoopCount.Late]!,
    }
  }

  get losses(): PacketLosses {
    const { dropped, sendErrors, late } = this.counters
    const add = (sum: number, { socket }: Opened): number => sum + socket.unbuffered()
    const unbuffered = this.#all().reduce(add, this.#pastUnbuffered)
    return { overloaded: dropped, unbuffered, unsent: sendErrors, late }
  }

  setHandler(handler: QueryHandler): void {
    this.#handler = handler
  }

  /** Number of sockets that threads serve. */
  get sockets(): number {
    return this.#closing === undefined ? this.#opened.length : 0
  }

  /** Socket `index`, for the thread with the same index. */
  socketOf(index: number): DataSocket | undefined {
    const opened = this.#opened[index]
    if (opened === undefined || this.#closing !== undefined) return undefined
    const { socket, counts } = opened
    const { fd, host, port } = socket
    return { address: this.#options.address, fd, host, port, counts }
  }

  has(fd: number): boolean {
    return this.#find(fd) !== undefined
  }

  /** Opens sockets until `count` are open. Throws the system's error. */
  grow(count: number): void {
    while (this.#opened.length < count) this.#open(this.port)
  }

  /** Closes the sockets with an index of `count` or above. */
  async shrink(count: number): Promise<void> {
    await this.#closeAll(this.#opened.splice(count))
  }

  /** Answers a query that a thread handed over (`BatchSocket.copyUnit`). */
  answer(fd: number, copy: Uint8Array): void {
    const socket = this.#find(fd)
    const handler = this.#handler
    const exchange = socket?.canTake ? handler.acquire() : undefined
    if (socket === undefined || exchange === undefined) {
      this.#past[LoopCount.Dropped]! += 1
      return
    }
    this.#drain.enter()
    const unit = socket.takeUnit(copy, exchange.query)
    exchange.query.protocol = Protocol.Udp
    const octets = handler.serve(exchange)
    const finish = (late: number): void => {
      this.#finish(socket, unit, exchange, late)
      handler.release(exchange)
      this.#drain.leave()
    }
    if (typeof octets === 'number') finish(octets)
    else void octets.then(finish)
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  #all(): Opened[] {
    return [...this.#opened, ...this.#leaving]
  }

  #find(fd: number): BatchSocket | undefined {
    return this.#all().find(({ socket }) => socket.fd === fd)?.socket
  }

  /**
   * Returns the port. Throws the system's error if another process has the address: all our sockets
   * share their address with any process of this user, so the kernel would not refuse it later.
   */
  #checkFree(): number {
    const { host, port } = this.#options
    try {
      const probe = new BatchSocket(this.#libc, { host, port })
      probe.close()
      return probe.port
    } catch (error) {
      // A reload from all addresses to one, or back: the old sockets serve until the new ones do.
      if (isInUse(error) && isPortOwn('udp', host, port)) return port
      throw error
    }
  }

  #open(port: number): number {
    const { host } = this.#options
    const socket = new BatchSocket(this.#libc, {
      host,
      port,
      reusePort: true,
      receiveBufferOctets: RECEIVE_BUFFER_OCTETS,
      sendBufferOctets: SEND_BUFFER_OCTETS,
    })
    const counts = new Float64Array(new SharedArrayBuffer(LOOP_COUNTS * 8))
    this.#opened.push({ socket, counts })
    return socket.port
  }

  #finish(socket: BatchSocket, unit: number, exchange: Exchange, octets: number): void {
    // After the drain, the number of a closed socket may be that of a connection to anybody.
    if (octets > 0 && !this.has(socket.fd)) this.#past[LoopCount.SendErrors]! += 1
    else if (octets > 0) {
      socket.reply(unit, exchange.reply, octets)
      // Replies of one turn of the event loop are sent together.
      if (this.#unsent.size === 0) setImmediate(this.#flush)
      this.#unsent.add(socket)
    }
    socket.giveBack(unit)
  }

  #sendLate(): void {
    for (const socket of this.#unsent) {
      // These replies are already late, so they do not wait for room in the socket's buffer too.
      if (!socket.flush()) socket.detach()
    }
    this.#unsent.clear()
  }

  async #close(): Promise<void> {
    this.#options.onClosing?.()
    await this.#closeAll(this.#opened.splice(0))
    this.#options.onClosed()
  }

  async #closeAll(opened: readonly Opened[]): Promise<void> {
    if (opened.length === 0) return
    for (const one of opened) this.#leaving.add(one)
    // From here on the kernel gives new queries to open sockets of other processes, if there are any.
    for (const { socket } of opened) socket.retire()
    // The kernel may still deliver a datagram to a socket that it chose before.
    await delay(RETIRE_MS)
    await this.#options.detach(opened.map(({ socket }) => socket.fd))
    await this.#drain.wait()
    for (const one of opened) {
      const { socket, counts } = one
      this.#leaving.delete(one)
      this.#sendLate()
      this.#pastUnbuffered += socket.unbuffered()
      for (let i = 0; i < LOOP_COUNTS; i++) this.#past[i]! += counts[i]!
      socket.close()
      this.#past[LoopCount.SendErrors]! += socket.sendErrors
    }
  }
}
