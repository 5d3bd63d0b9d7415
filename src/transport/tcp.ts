import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { acceptMore, acceptQueued } from '../base/accept-queued.ts'
import { EventLoopBudget, noteAccepted } from '../base/event-loop-budget.ts'
import { type Peer, Places } from '../base/places.ts'
import type { StreamProxy } from './connection-ends.ts'
import type { StreamListener, StreamPlace } from './driver.ts'
import { openHost } from './driver.ts'
import type { QueryHandler } from './exchange.ts'
import type { HandedState, Handover } from './handover/handover.ts'
import type { ReusePortBinder } from './handover/reuse-port-binder.ts'
import { peerOfText } from './peer-address.ts'
import { type ProxiedPlace, proxyRulesOf } from './proxy/rules.ts'
import { NEWCOMER, TcpConnection, type TcpHost } from './tcp-connection.ts'
import { createTcpCounters, type TcpCounters } from './tcp-counters.ts'
import type { TcpLimits } from './tcp-limits.ts'

export interface TcpOptions {
  /** An IP address; '' = every address, IPv4 and IPv6. */
  readonly host: string
  /** 0 = any free port. */
  readonly port: number
  readonly handler: QueryHandler
  /** Limits that are left out have their defaults. */
  readonly limits?: Partial<TcpLimits>
  /** Counters of the process; default: the listener has its own. */
  readonly counters?: TcpCounters | undefined
  /** Undefined = no other process can bind the address. */
  readonly reusePortBinder?: ReusePortBinder | undefined
  /** Undefined = connections have no PROXY header. */
  readonly proxy?: StreamProxy | undefined
}

/** An address, and what directives of its blocks set. */
export interface TcpPlace extends StreamPlace, ProxiedPlace {}

export interface TcpListener extends StreamListener<TcpPlace> {
  readonly counters: Readonly<TcpCounters>
  /** Open connections. */
  readonly connections: number
  /** Octets of replies that wait until their peers read earlier ones. */
  readonly unsentOctets: number
}

/** CoreDNS's defaults of `timeouts`, and bounds of our own where CoreDNS has none. */
const TCP_LIMITS_DEFAULT: TcpLimits = {
  readMs: 3000,
  writeMs: 5000,
  // Linux reports room once a third of the send buffer is free: 12 KiB/s with 4 MiB, the largest buffer without FFI.
  streamWriteMs: 120_000,
  idleMs: 10_000,
  queriesMax: -1,
  inFlightMax: 64,
  unsentOctetsMax: 1 << 20,
  // Without this limit, 2 000 connections with 1 MiB each would keep 2 GB.
  allUnsentOctetsMax: 1 << 27,
  connectionsMax: 2000,
  connectionsPerAddressMax: 100,
  streamsMax: 256,
  messageOctetsMin: 12,
  messageOctetsMax: 16_384,
  sparedMs: 500,
  quietMs: 1000,
  drainMs: 5000,
}

/** How much later than its deadline a connection may be closed, as a part of the shortest timeout. */
const SWEEP_FRACTION = 4
const SWEEP_MS_MIN = 5
const SWEEP_MS_MAX = 1000
/**
 * Queue of connections to accept. If it is full, a client retries its SYN after a second. The
 * system's limit may be lower (net.core.somaxconn).
 */
const BACKLOG = 4096

/** A client with at most this part of all connections has few. */
const FEW = 1 / 40

/** A search for connections to end checks all connections, so it returns up to this many. */
const USELESS_MAX = 64
/** How long the result of a search counts, also if it found none. */
const USELESS_MS = 50

/** A connection with at most so many unread octets is not cut for others: the longest message, with its length. */
const SPARED_OCTETS = 65_537

/** Interval of attempts to hand over a connection. */
const HAND_OVER_CHECK_MS = 1
/** While closing: how often connections are checked, and how long they may take to end after a reply. */
const LEAVE_CHECK_MS = 25
const LAST_ANSWER_MS = 1000

/**
 * Opens a TCP socket and answers the queries of its connections (RFC 7766). Rejects with the
 * system's error (EADDRINUSE, …) if it can't be bound.
 */
export function listenTcp(options: TcpOptions): Promise<TcpListener> {
  return openHost(options.host, (host) => open(options, host))
}

async function open(options: TcpOptions, host: string): Promise<TcpListener> {
  // Half open: a client that ends its side after the last query still gets the replies.
  const server = createServer({ allowHalfOpen: true, noDelay: true })
  const { port, reusePortBinder } = options
  if (reusePortBinder === undefined) {
    server.listen({ port, host, backlog: BACKLOG })
    await once(server, 'listening')
  } else {
    const fd = reusePortBinder.bind(host, port)
    server.listen({ fd }, BACKLOG)
    await once(server, 'listening')
    reusePortBinder.claim(fd)
    acceptMore(server, () => reusePortBinder.accept(fd))
  }
  return new TcpServer(server, options)
}

/** Represents a connection that is about to be opened. */
const newcomer = { precedence: () => NEWCOMER }

class TcpServer implements TcpListener, TcpHost {
  readonly port: number
  readonly counters: TcpCounters
  readonly #server: Server
  #limits: TcpLimits
  readonly #places = new Places<TcpConnection | typeof newcomer>()
  readonly #streams = new Places<TcpConnection>()
  readonly turns = new EventLoopBudget()
  proxy: StreamProxy | undefined
  #sweeper: NodeJS.Timeout
  #handler: QueryHandler
  #closing: Promise<void> | undefined = undefined
  #whenEmpty: (() => void) | undefined = undefined
  readonly #binder: ReusePortBinder | undefined
  readonly #handover: Handover | undefined
  #isMoving = false
  #isLeaving = false
  /** Idle or clogged connections that the last search found. The last one is the next to end. */
  #useless: (TcpConnection | typeof newcomer)[] = []
  #isNoneUseless = false
  #uselessUntilMs = 0
  #unsent = 0

  constructor(server: Server, options: TcpOptions) {
    this.#server = server
    this.counters = options.counters ?? createTcpCounters()
    this.#handler = options.handler
    this.#limits = { ...TCP_LIMITS_DEFAULT, ...options.limits }
    this.proxy = options.proxy
    const { address, port } = server.address() as AddressInfo
    this.port = port
    server.on('connection', (socket) => {
      noteAccepted()
      this.#accept(socket)
    })
    server.on('error', () => {
      this.counters.errors++
    })
    this.#sweeper = this.#startSweeper()
    const adopt = (socket: Socket, state: HandedState): void => this.#accept(socket, state)
    this.#binder = options.reusePortBinder
    this.#handover = this.#binder?.createHandover(address, port, adopt)
  }

  get connections(): number {
    return this.#places.size
  }

  get unsentOctets(): number {
    return this.#unsent
  }

  currentHandler(): QueryHandler {
    return this.#handler
  }

  setHandler(handler: QueryHandler): void {
    this.#handler = handler
  }

  setPlace(place: TcpPlace): void {
    if (this.#closing !== undefined) return
    this.#limits = { ...TCP_LIMITS_DEFAULT, ...place.timeouts }
    this.proxy = streamProxyOf(place)
    clearInterval(this.#sweeper)
    this.#sweeper = this.#startSweeper()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const handover = this.#handover?.begin() ? this.#handover : undefined
    if (handover === undefined) this.#askToLeave()
    else this.#setMoving(true)
    await acceptQueued(this.#server, BACKLOG)
    const closed = once(this.#server, 'close')
    this.#server.close()
    if (handover !== undefined) {
      await this.#handOver(handover)
      this.#setMoving(false)
      this.#askToLeave()
    }
    this.#handover?.close()
    await this.#leave()
    await this.#drained()
    for (const connection of this.#open()) connection.destroy()
    clearInterval(this.#sweeper)
    await closed
  }

  /** Makes all connections stop reading queries; false: they read again. */
  #setMoving(isMoving: boolean): void {
    this.#isMoving = isMoving
    for (const connection of this.#open()) connection.setMoving(isMoving)
  }

  /** From now on, replies ask the clients to end their connections. */
  #askToLeave(): void {
    this.#isLeaving = true
    for (const connection of this.#open()) connection.leave()
  }

  /**
   * Hands each connection over to the new process as soon as its queries are answered. Stops if
   * none could be handed over for `drainMs`.
   */
  async #handOver(handover: Handover): Promise<void> {
    const left = new Set(this.#open())
    let endMs = performance.now() + this.#limits.drainMs
    while (left.size > 0 && performance.now() < endMs) {
      for (const connection of left) {
        const result = connection.handOver(handover)
        if (result === 'busy') continue
        if (result === 'full') break
        if (result === 'gone') return
        if (result === 'done') endMs = performance.now() + this.#limits.drainMs
        else connection.setMoving(false)
        left.delete(connection)
      }
      if (left.size > 0) await delay(HAND_OVER_CHECK_MS)
    }
  }

  /**
   * Ends connections at a moment when likely no query is in flight here, because a reset would
   * answer it. First ends silent connections; after `drainMs` also ends others after a reply; a
   * second later ends all that are left.
   */
  async #leave(): Promise<void> {
    const { drainMs } = this.#limits
    const startMs = performance.now()
    const endMs = startMs + drainMs + Math.min(drainMs, LAST_ANSWER_MS)
    while (this.#places.size > 0) {
      const nowMs = performance.now()
      for (const connection of this.#open()) {
        if (nowMs >= endMs || connection.isQuiet(nowMs)) connection.finish()
        else if (nowMs >= startMs + drainMs) connection.endWithAnswer()
      }
      if (nowMs >= endMs) return
      await delay(LEAVE_CHECK_MS)
    }
  }

  #drained(): Promise<void> {
    if (this.#places.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, Math.min(this.#limits.drainMs, LAST_ANSWER_MS))
      this.#whenEmpty = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  #open(): IterableIterator<TcpConnection> {
    // The newcomer exists only within `#hasRoom`.
    return this.#places.holders() as IterableIterator<TcpConnection>
  }

  /** `state`: state of a connection that another process has handed over. */
  #accept(socket: Socket, state?: HandedState): void {
    // A connection that the peer has already reset has no address any more.
    const address = socket.remoteAddress
    const peer = address === undefined ? undefined : peerOfText(address)
    if (peer === undefined || !this.#hasRoom(peer)) {
      this.counters.refused++
      socket.on('error', () => {})
      socket.destroy()
      return
    }
    const connection = new TcpConnection(socket, peer, this.#limits, this)
    this.#places.enter(connection, peer)
    this.counters.open++
    socket.on('close', () => this.#forget(connection))
    if (this.#isMoving) connection.setMoving(true)
    if (this.#isLeaving) connection.leave()
    if (state !== undefined) connection.adopt(state)
  }

  /**
   * True if there is room for one more connection of `peer`. If needed, ends another connection
   * (RFC 7766 section 6.2.3): one of the same client if that is at its limit, else one of the
   * client with the most. A client with few keeps its places, unless they are idle and all clients
   * have few.
   */
  #hasRoom(peer: Peer): boolean {
    const { connectionsMax, connectionsPerAddressMax } = this.#limits
    const nowMs = performance.now()
    const places = this.#places
    places.enter(newcomer, peer)
    let first: TcpConnection | typeof newcomer | undefined
    if (places.countOf(peer) > connectionsPerAddressMax) first = places.worstOf(peer, nowMs)
    else if (places.size > connectionsMax) first = this.#worst(nowMs, connectionsMax)
    places.leave(newcomer)
    if (first === undefined) return true
    if (!(first instanceof TcpConnection)) return false
    this.#evict(first)
    return true
  }

  /**
   * If no client has many connections, an idle or clogged connection ends first. Under load, a resolver may have
   * several connections that wait for their turn, which is more than each of many attackers has.
   */
  #worst(nowMs: number, connectionsMax: number): TcpConnection | typeof newcomer | undefined {
    const places = this.#places
    const isOld = nowMs >= this.#uselessUntilMs
    while (!isOld && this.#useless.length > 0) {
      const next = this.#useless.pop()!
      if (places.has(next) && next.precedence(nowMs) < NEWCOMER) return next
    }
    if (isOld || !this.#isNoneUseless) {
      this.#useless = places.worstBelow(nowMs, connectionsMax * FEW, NEWCOMER, USELESS_MAX)
      this.#isNoneUseless = this.#useless.length === 0
      this.#uselessUntilMs = nowMs + USELESS_MS
    }
    return this.#useless.pop() ?? places.worst(nowMs)
  }

  move(connection: TcpConnection, peer: Peer): void {
    this.#places.leave(connection)
    const hasRoom = this.#hasRoom(peer)
    this.#places.enter(connection, peer)
    if (!hasRoom) this.#evict(connection)
  }

  beginStreams(connection: TcpConnection, peer: Peer): void {
    const fd = connection.descriptor
    if (fd !== undefined) this.#binder?.growSendBuffer(fd)
    this.#streams.enter(connection, peer)
    if (this.#streams.size <= this.#limits.streamsMax) return
    const first = this.#streams.worst(performance.now())
    if (first !== undefined) this.#evict(first)
  }

  endStreams(connection: TcpConnection): void {
    this.#streams.leave(connection)
  }

  noteUnsent(octets: number): void {
    this.#unsent += octets
    if (octets <= 0 || this.#unsent <= this.#limits.allUnsentOctetsMax) return
    let largest: TcpConnection | undefined
    for (const connection of this.#open())
      if (connection.unsentOctets > (largest?.unsentOctets ?? SPARED_OCTETS)) largest = connection
    largest?.overrun()
  }

  #evict(connection: TcpConnection): void {
    this.counters.refused++
    connection.destroy()
    this.#forget(connection)
  }

  /** Frees the places of a connection that is closed or destroyed. */
  #forget(connection: TcpConnection): void {
    if (!this.#places.leave(connection)) return
    this.counters.open--
    if (this.#places.size === 0) this.#whenEmpty?.()
  }

  #startSweeper(): NodeJS.Timeout {
    const { readMs, writeMs, idleMs } = this.#limits
    const sweepMs = Math.min(readMs, writeMs, idleMs) / SWEEP_FRACTION
    return setInterval(() => this.#sweep(), Math.min(Math.max(sweepMs, SWEEP_MS_MIN), SWEEP_MS_MAX))
  }

  #sweep(): void {
    const nowMs = performance.now()
    for (const connection of this.#open()) connection.checkDeadlines(nowMs)
  }
}

export function streamProxyOf(place: ProxiedPlace): StreamProxy | undefined {
  const rules = proxyRulesOf(place)
  return rules && { server: place.address, rules }
}
