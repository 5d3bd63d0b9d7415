import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Listener, QueryHandler } from './exchange.ts'
import { openHost } from './open-host.ts'
import { networkKey } from './peer-address.ts'
import type { SharedPorts } from './shared-port.ts'
import {
  createTcpCounters,
  TcpConnection,
  type TcpCounters,
  type TcpLimits,
} from './tcp-connection.ts'
import { Turns } from './turns.ts'

export interface TcpOptions {
  /** An IP address; '' = every address, IPv4 and IPv6. */
  readonly host: string
  /** 0 = any free port. */
  readonly port: number
  readonly handler: QueryHandler
  /** What is left out has its default. */
  readonly limits?: Partial<TcpLimits>
  /** Counts into these, of the process; default: the listener has some of its own. */
  readonly counters?: TcpCounters | undefined
  /** Undefined = only this process has the address, ever. */
  readonly sharedPorts?: SharedPorts | undefined
}

export interface TcpListener extends Listener {
  readonly counters: Readonly<TcpCounters>
  /** Open connections. */
  readonly connections: number
  /** Later connections have these limits; what is left out has its default. */
  setLimits(limits: Partial<TcpLimits>): void
}

/** The defaults of `timeouts` where CoreDNS has them; bounds where it has none. */
export const TCP_LIMITS_DEFAULT: TcpLimits = {
  readMs: 3000,
  writeMs: 5000,
  idleMs: 10_000,
  queriesMax: -1,
  inFlightMax: 64,
  unsentOctetsMax: 1 << 20,
  connectionsMax: 2000,
  connectionsPerAddressMax: 100,
  sparedMs: 500,
  drainMs: 5000,
}

/** How much later than its deadline a connection may be closed, as a part of the shortest timeout. */
const SWEEP_FRACTION = 4
const SWEEP_MS_MIN = 5
const SWEEP_MS_MAX = 1000
const BACKLOG = 511

/** While closing: how long a connection must have been silent to be ended, and how long that can take. */
const QUIET_MS = 100
const QUIET_MS_MAX = 1000

/**
 * Opens a TCP socket and answers the queries that come over its connections (RFC 7766). Rejects with the
 * system's error (EADDRINUSE, …) where it can't be bound.
 */
export function listenTcp(options: TcpOptions): Promise<TcpListener> {
  return openHost(options.host, (host) => open(options, host))
}

async function open(options: TcpOptions, host: string): Promise<TcpListener> {
  // Half open: who shuts down writing after the last query still gets the answers.
  const server = createServer({ allowHalfOpen: true, noDelay: true })
  const { port, sharedPorts } = options
  if (sharedPorts === undefined) {
    server.listen({ port, host, backlog: BACKLOG })
    await once(server, 'listening')
  } else {
    const fd = sharedPorts.bind(host, port)
    server.listen({ fd }, BACKLOG)
    await once(server, 'listening')
    sharedPorts.claim(fd)
  }
  return new TcpServer(server, options)
}

class TcpServer implements TcpListener {
  readonly port: number
  readonly counters: TcpCounters
  readonly #server: Server
  #limits: TcpLimits
  /** With the `networkKey` of each. */
  readonly #connections = new Map<TcpConnection, string>()
  /** Counts by `networkKey`. */
  readonly #perAddress = new Map<string, number>()
  readonly #turns = new Turns()
  #sweeper: NodeJS.Timeout
  #handler: QueryHandler
  #closing: Promise<void> | undefined = undefined
  #whenEmpty: (() => void) | undefined = undefined

  constructor(server: Server, options: TcpOptions) {
    this.#server = server
    this.counters = options.counters ?? createTcpCounters()
    this.#handler = options.handler
    this.#limits = { ...TCP_LIMITS_DEFAULT, ...options.limits }
    this.port = (server.address() as { port: number }).port
    server.on('connection', (socket) => this.#accept(socket))
    server.on('error', () => {
      this.counters.errors++
    })
    this.#sweeper = this.#startSweeper()
  }

  get connections(): number {
    return this.#connections.size
  }

  setHandler(handler: QueryHandler): void {
    this.#handler = handler
  }

  setLimits(limits: Partial<TcpLimits>): void {
    if (this.#closing !== undefined) return
    this.#limits = { ...TCP_LIMITS_DEFAULT, ...limits }
    clearInterval(this.#sweeper)
    this.#sweeper = this.#startSweeper()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    await this.#hushed()
    await this.#drained()
    for (const connection of this.#connections.keys()) connection.destroy()
    clearInterval(this.#sweeper)
    await closed
  }

  /**
   * Ends connections that are silent, so that a query on its way here is not answered by a reset;
   * those that never are, once they have had the time.
   */
  async #hushed(): Promise<void> {
    const untilMs = performance.now() + QUIET_MS_MAX
    for (;;) {
      const nowMs = performance.now()
      for (const connection of this.#connections.keys()) {
        if (nowMs >= untilMs || connection.silentMs(nowMs) >= QUIET_MS) connection.finish()
      }
      if (nowMs >= untilMs || this.#connections.size === 0) return
      await delay(Math.min(QUIET_MS / 4, untilMs - nowMs))
    }
  }

  #drained(): Promise<void> {
    if (this.#connections.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, this.#limits.drainMs)
      this.#whenEmpty = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  #accept(socket: Socket): void {
    // A peer that reset the connection before we got here has no address any more.
    const address = socket.remoteAddress
    const key = address === undefined ? '' : networkKey(address)
    const open = this.#perAddress.get(key) ?? 0
    const mayOpen = open < this.#limits.connectionsPerAddressMax && this.#closing === undefined
    if (address === undefined || !mayOpen || !this.#hasRoom()) {
      this.counters.refused++
      socket.on('error', () => {})
      socket.destroy()
      return
    }
    this.#perAddress.set(key, open + 1)
    const current = (): QueryHandler => this.#handler
    const { counters } = this
    const connection = new TcpConnection(socket, this.#limits, counters, current, this.#turns)
    this.#connections.set(connection, key)
    socket.on('close', () => this.#forget(connection))
  }

  /**
   * True if there is room for one more, where need be that of the connection that has asked nothing for
   * the longest (RFC 7766 section 6.2.3): else a few addresses could keep everybody out for ever.
   */
  #hasRoom(): boolean {
    if (this.#connections.size < this.#limits.connectionsMax) return true
    let idlest: TcpConnection | undefined
    let sinceMs = performance.now() - this.#limits.sparedMs
    for (const connection of this.#connections.keys()) {
      if (connection.isBusy || connection.askedMs >= sinceMs) continue
      idlest = connection
      sinceMs = connection.askedMs
    }
    if (idlest === undefined) return false
    this.counters.refused++
    idlest.destroy()
    this.#forget(idlest)
    return true
  }

  /** Once it is closed, or as good as. */
  #forget(connection: TcpConnection): void {
    const key = this.#connections.get(connection)
    if (key === undefined) return
    this.#connections.delete(connection)
    const left = (this.#perAddress.get(key) ?? 1) - 1
    if (left > 0) this.#perAddress.set(key, left)
    else this.#perAddress.delete(key)
    if (this.#connections.size === 0) this.#whenEmpty?.()
  }

  #startSweeper(): NodeJS.Timeout {
    const { readMs, writeMs, idleMs } = this.#limits
    const sweepMs = Math.min(readMs, writeMs, idleMs) / SWEEP_FRACTION
    return setInterval(() => this.#sweep(), Math.min(Math.max(sweepMs, SWEEP_MS_MIN), SWEEP_MS_MAX))
  }

  #sweep(): void {
    const nowMs = performance.now()
    for (const connection of this.#connections.keys()) connection.checkDeadlines(nowMs)
  }
}
