import { constants } from 'node:crypto'
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { isIP, type Socket } from 'node:net'
import type { SecureContextOptions } from 'node:tls'
import { acceptMore, acceptQueued } from '../base/accept-queued.ts'
import { EventLoopBudget, noteAccepted } from '../base/event-loop-budget.ts'
import type { TlsTexts } from '../plugin/admin.ts'
import { type ClientPlace, ClientPlaces } from './client-places.ts'
import { nodeAddresses } from './node-addresses.ts'

interface HttpServerOptions {
  /** Answers one request. Must not throw. Called for one request of a connection at a time. */
  readonly answer: (request: IncomingMessage, response: ServerResponse) => void
  /** Returns the milliseconds from a request to the end of its reply, as the client reads it. */
  readonly replyMsMax: (request: IncomingMessage) => number
  /** Undefined = HTTP without TLS. */
  readonly tls?: TlsTexts | undefined
  /** True if `answer` refuses requests without a `Host` header. Otherwise, Node refuses them with an empty reply. */
  readonly checksHost?: boolean
}

/** Binds TCP addresses, and makes the kernel give new connections to a bound socket that listens. */
export interface SharedPorts {
  /** Returns the socket. Throws the system's error. */
  bind(host: string, port: number): number
  claim(fd: number): void
  /** Returns the next connection that waits; -1 = none. */
  accept(fd: number): number
}

/** Returns the options of a TLS server: a client can't make it repeat handshakes on one connection. */
export function tlsOptionsOf(texts: TlsTexts): SecureContextOptions {
  return { ...texts, secureOptions: constants.SSL_OP_NO_RENEGOTIATION }
}

/** From the start of a connection, or of a request on a kept one, to the end of its headers. */
const HEADERS_MS_MAX = 2_000
const REQUEST_MS_MAX = 3_000
const KEEP_ALIVE_MS = 5_000
/** How often Node checks for requests that take too long; its own default is half a minute. */
const CHECK_INTERVAL_MS = 500
const HEADER_OCTETS_MAX = 8_192
/** Connections that the kernel keeps until they are accepted; the system's own limit applies too. */
const BACKLOG = 1024

/** A connection. */
interface Client {
  readonly place: ClientPlace
  /** A request is being answered. */
  isBusy: boolean
  /** True once a request has arrived. */
  hasAsked: boolean
  /** The socket of the kernel, below TLS. */
  readonly socket: Socket
}

/**
 * An HTTP address that stays available under attack: it limits connections per client, and the time and octets of
 * each request. `ClientPlaces` decides which connections it keeps.
 */
export class HttpServer {
  readonly server: Server
  readonly #options: HttpServerOptions
  readonly #places = new ClientPlaces(nodeAddresses())
  /** By `connectionOf`: with TLS, a request has another socket object than its connection. */
  readonly #clients = new Map<string, Client>()
  /** Turns of clients that are not regular. */
  readonly #turns = new EventLoopBudget()
  #isClosing = false
  #closing: Promise<void> | undefined = undefined
  #whenEmpty: (() => void) | undefined = undefined

  /** Throws the error of the TLS library if `tls` is invalid. */
  constructor(options: HttpServerOptions) {
    this.#options = options
    const limits: ServerOptions = {
      headersTimeout: HEADERS_MS_MAX,
      requestTimeout: REQUEST_MS_MAX,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
      maxHeaderSize: HEADER_OCTETS_MAX,
      requireHostHeader: options.checksHost !== true,
    }
    const { tls } = options
    this.server =
      tls === undefined
        ? createServer(limits)
        : createTlsServer({ ...limits, ...tlsOptionsOf(tls), handshakeTimeout: HEADERS_MS_MAX })
    this.server.on('connection', (socket) => this.#connected(socket))
    this.server.on('request', (request, response) => this.#asked(request, response))
    // An unknown expectation may be ignored (RFC 9110 section 10.1.1). Node would send an empty reply.
    this.server.on('checkExpectation', (request, response) => this.#asked(request, response))
  }

  /**
   * Opens `host:port`, `[v6]:port` or `:port`; returns the actual port. Rejects if the address is not available.
   * `shared`: opens addresses that can be handed over to a later process.
   */
  async listen(address: string, shared: SharedPorts | undefined): Promise<number> {
    const { host, port } = splitAddress(address)
    const server = this.server
    // Only Node can resolve a name.
    const fd = shared !== undefined && isIP(host) !== 0 ? shared.bind(host, port) : undefined
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      const where = fd === undefined ? { host, port } : { fd }
      server.listen({ ...where, backlog: BACKLOG }, () => {
        server.off('error', reject)
        resolve()
      })
    })
    // A failure to accept, such as too many open files, must not end the process.
    server.on('error', () => {})
    if (fd !== undefined && shared !== undefined) {
      shared.claim(fd)
      acceptMore(server, () => shared.accept(fd))
    }
    const bound = server.address()
    return typeof bound === 'object' && bound !== null ? bound.port : port
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  /**
   * Closing the listening socket resets the connections that wait to be accepted, and a connection that has just been
   * accepted has its request on the way. So both are served first.
   */
  async #close(): Promise<void> {
    await acceptQueued(this.server, BACKLOG)
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()))
    this.#isClosing = true
    // Node.js does not know of the connections of `acceptMore`.
    const left = new Promise<void>((resolve) => (this.#whenEmpty = resolve))
    if (this.#clients.size === 0) this.#whenEmpty?.()
    for (const client of this.#clients.values()) if (client.hasAsked) endIdle(client)
    // A server that closes checks the times of headers no more, and a header may arrive octet by octet.
    const late = setTimeout(() => {
      for (const client of this.#clients.values()) endIdle(client)
    }, HEADERS_MS_MAX)
    await Promise.all([closed, left])
    clearTimeout(late)
  }

  #connected(socket: Socket): void {
    noteAccepted()
    const end = (): void => void socket.destroy()
    const place = this.#places.admit(socket.remoteAddress ?? '', performance.now(), end)
    if (place === undefined) {
      end()
      return
    }
    const id = connectionOf(socket)
    const client = { place, isBusy: false, hasAsked: false, socket }
    this.#clients.set(id, client)
    socket.once('close', () => {
      if (this.#clients.get(id) === client) this.#clients.delete(id)
      this.#places.leave(place)
      if (this.#clients.size === 0) this.#whenEmpty?.()
    })
  }

  #asked(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request
    const client = this.#clients.get(connectionOf(socket))
    // A client that pipelines requests could make the server produce replies that it never reads.
    if (client === undefined || client.isBusy || socket.destroyed) {
      socket.destroy()
      return
    }
    client.isBusy = true
    client.hasAsked = true
    const deadline = setTimeout(() => socket.destroy(), this.#options.replyMsMax(request))
    response.once('close', () => {
      clearTimeout(deadline)
      client.isBusy = false
      if (this.#isClosing) socket.destroy()
    })
    response.once('finish', () => this.#places.noteServed(client.place, performance.now()))
    const { place } = client
    const isRegular = this.#places.isRegular(place.client)
    if (isRegular || !this.#turns.isOver()) this.#answer(request, response)
    else this.#turns.wait(place, () => this.#answer(request, response))
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    if (!request.socket.destroyed) this.#options.answer(request, response)
  }
}

/** A reply that is being sent has its own deadline. */
function endIdle({ socket, isBusy }: Client): void {
  if (!isBusy) socket.destroy()
}

/** Identifies an open connection of a server. */
function connectionOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`
}

/**
 * Splits `host:port`. The caller has checked the port. `localhost` is 127.0.0.1, as for CoreDNS,
 * whether or not the system resolves the name.
 */
function splitAddress(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon).replace(/^\[(.*)\]$/, '$1')
  const names: Readonly<Record<string, string>> = { '': '::', localhost: '127.0.0.1' }
  return { host: names[host] ?? host, port: Number(address.slice(colon + 1)) }
}
