import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { isIP, type Socket } from 'node:net'
import { acceptQueued } from '../base/accept-queued.ts'
import type { HttpReply } from '../plugin/directive.ts'
import { type ClientPlace, ClientPlaces } from './client-places.ts'
import { nodeAddresses } from './node-addresses.ts'

/** One GET endpoint. */
export interface Route {
  readonly path: string
  readonly run: () => HttpReply | Promise<HttpReply>
}

/** An open HTTP address. */
export interface HttpListener {
  /** The actual port, if port 0 was requested. */
  readonly port: number
  /** Serves these routes from the next request on. */
  use(routes: readonly Route[]): void
  /** Stops accepting, lets requests in flight finish, frees the address. */
  close(): Promise<void>
}

export interface HttpOptions {
  /** `host:port`, `[v6]:port` or `:port` for every address. */
  readonly address: string
  readonly routes: readonly Route[]
  /** Called with the error of an endpoint. The client only gets the status. */
  readonly onError: (path: string, error: unknown) => void
  /** Opens addresses that can be handed over to a later process; undefined = they cannot. */
  readonly reusePortBinder?: SharedPorts | undefined
}

/** Binds TCP addresses, and makes the kernel give new connections to a bound socket that listens. */
interface SharedPorts {
  /** Returns the socket. Throws the system's error. */
  bind(host: string, port: number): number
  claim(fd: number): void
}

/** From the start of a connection, or of a request on a kept one, to the end of its headers. */
const HEADERS_MS_MAX = 2_000
const REQUEST_MS_MAX = 3_000
/** From a request to the end of its reply, as the client reads it. */
const REPLY_MS_MAX = 5_000
const KEEP_ALIVE_MS = 5_000
/** How often Node checks for requests that take too long; its own default is half a minute. */
const CHECK_INTERVAL_MS = 500
const HEADER_OCTETS_MAX = 8_192
/** Connections that the kernel keeps until they are accepted; the system's own limit applies too. */
const BACKLOG = 1024
const TEXT = 'text/plain; charset=utf-8'

const NOT_FOUND: HttpReply = { status: 404, contentType: TEXT, body: '404 page not found\n' }
const NO_METHOD: HttpReply = { status: 405, contentType: TEXT, body: '405 method not allowed\n' }
const FAILED: HttpReply = { status: 500, contentType: TEXT, body: '500 internal server error\n' }

/**
 * Opens an HTTP address. Only GET and HEAD, no bodies; an unknown path is 404, another method 405. `ClientPlaces`
 * decides which connections it keeps. Rejects if the address can't be bound.
 */
export async function openHttp(options: HttpOptions): Promise<HttpListener> {
  const service = new HttpService(options)
  const { host, port } = splitAddress(options.address)
  await listen(service.server, host, port, options.reusePortBinder)
  const bound = service.server.address()
  return {
    port: typeof bound === 'object' && bound !== null ? bound.port : port,
    use: (routes) => service.use(routes),
    close: () => service.close(),
  }
}

/** A connection. */
interface Client {
  readonly place: ClientPlace
  /** A request is being answered. */
  isBusy: boolean
  /** True once a request has arrived. */
  hasAsked: boolean
}

class HttpService {
  readonly server: Server
  readonly #onError: HttpOptions['onError']
  #routes: ReadonlyMap<string, Route>
  readonly #places = new ClientPlaces(nodeAddresses())
  readonly #clients = new Map<Socket, Client>()
  /** Requests of clients that are not regular: one is answered per turn of the event loop. */
  readonly #waiting: (() => void)[] = []
  #isClosing = false
  #closing: Promise<void> | undefined = undefined

  constructor({ routes, onError }: HttpOptions) {
    this.#routes = byPath(routes)
    this.#onError = onError
    this.server = createServer({
      headersTimeout: HEADERS_MS_MAX,
      requestTimeout: REQUEST_MS_MAX,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
      maxHeaderSize: HEADER_OCTETS_MAX,
    })
    this.server.on('connection', (socket) => this.#connected(socket))
    this.server.on('request', (request, response) => this.#asked(request, response))
  }

  use(routes: readonly Route[]): void {
    this.#routes = byPath(routes)
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
    for (const [socket, { isBusy, hasAsked }] of this.#clients) {
      if (isBusy) continue
      if (hasAsked) socket.destroy()
      else socket.setTimeout(HEADERS_MS_MAX, () => socket.destroy())
    }
    return closed
  }

  #connected(socket: Socket): void {
    const end = (): void => void socket.destroy()
    const place = this.#places.admit(socket.remoteAddress ?? '', performance.now(), end)
    if (place === undefined) {
      end()
      return
    }
    this.#clients.set(socket, { place, isBusy: false, hasAsked: false })
    socket.once('close', () => {
      this.#clients.delete(socket)
      this.#places.leave(place)
    })
  }

  #asked(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request
    const client = this.#clients.get(socket)
    // A client that pipelines requests could make the server produce replies that it never reads.
    if (client === undefined || client.isBusy || socket.destroyed) {
      socket.destroy()
      return
    }
    client.isBusy = true
    client.hasAsked = true
    const deadline = setTimeout(() => socket.destroy(), REPLY_MS_MAX)
    response.once('close', () => {
      clearTimeout(deadline)
      client.isBusy = false
      if (this.#isClosing) socket.destroy()
    })
    response.once('finish', () => this.#places.noteServed(client.place, performance.now()))
    if (this.#places.isRegular(client.place.client)) void this.#answer(request, response)
    else this.#queue(() => this.#answer(request, response))
  }

  #queue(answer: () => void): void {
    if (this.#waiting.push(answer) === 1) setImmediate(this.#next)
  }

  readonly #next = (): void => {
    this.#waiting.shift()?.()
    if (this.#waiting.length > 0) setImmediate(this.#next)
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.socket.destroyed) return
    const path = request.url?.split('?', 1)[0] ?? ''
    const route = this.#routes.get(path)
    if (route === undefined) return send(response, NOT_FOUND)
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD')
      return send(response, NO_METHOD)
    }
    try {
      send(response, await route.run())
    } catch (error) {
      this.#onError(path, error)
      send(response, FAILED)
    }
  }
}

function send(response: ServerResponse, { status, contentType, body }: HttpReply): void {
  const octets = Buffer.byteLength(body)
  response.writeHead(status, { 'content-type': contentType, 'content-length': octets })
  response.end(body)
}

async function listen(
  server: Server,
  host: string,
  port: number,
  shared: SharedPorts | undefined,
): Promise<void> {
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
  if (fd !== undefined) shared?.claim(fd)
}

function byPath(routes: readonly Route[]): ReadonlyMap<string, Route> {
  return new Map(routes.map((route) => [route.path, route]))
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
