import { isIP } from 'node:net'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { HttpReply } from '../plugin/directive.ts'

/** One GET endpoint. */
export interface Route {
  readonly path: string
  readonly run: () => HttpReply | Promise<HttpReply>
}

/** An open HTTP address. */
export interface HttpListener {
  /** The port that it has, where 0 was asked for. */
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
  /** Told what an endpoint threw; the client only learns that it did. */
  readonly onError: (path: string, error: unknown) => void
  /** Opens addresses that a later process may take over; undefined = nobody may. */
  readonly sharedPorts?: SharedPorts | undefined
}

/** Binds TCP addresses, and has connections come here once what it bound is listening. */
interface SharedPorts {
  /** Returns the socket. Throws the system's error. */
  bind(host: string, port: number): number
  claim(fd: number): void
}

const CONNECTIONS_MAX = 256
const HEADERS_MS_MAX = 5_000
const REQUEST_MS_MAX = 10_000
const KEEP_ALIVE_MS = 30_000
/** How often Node looks for requests that take too long; its own default is half a minute. */
const CHECK_INTERVAL_MS = 1_000
const HEADER_OCTETS_MAX = 8_192
const TEXT = 'text/plain; charset=utf-8'

/**
 * Opens an HTTP address. Only GET and HEAD, no bodies; an unknown path is 404, another method 405.
 * Rejects where the address can't be had.
 */
export async function openHttp(options: HttpOptions): Promise<HttpListener> {
  let routes = byPath(options.routes)
  const app = fastify({
    bodyLimit: 1,
    connectionTimeout: REQUEST_MS_MAX,
    requestTimeout: REQUEST_MS_MAX,
    keepAliveTimeout: KEEP_ALIVE_MS,
    http: {
      headersTimeout: HEADERS_MS_MAX,
      maxHeaderSize: HEADER_OCTETS_MAX,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
    },
    forceCloseConnections: 'idle',
    exposeHeadRoutes: false,
  })
  app.server.maxConnections = CONNECTIONS_MAX
  // The hook answers everything, before a body would be read: routes can change while listening.
  app.addHook('onRequest', (request, reply) => serve(request, reply, routes, options.onError))
  const { host, port } = splitAddress(options.address)
  await listen(app, host === '' ? '::' : host, port, options.sharedPorts)
  const bound = app.server.address()
  return {
    port: typeof bound === 'object' && bound !== null ? bound.port : port,
    use: (next) => {
      routes = byPath(next)
    },
    close: () => app.close(),
  }
}

async function listen(
  app: FastifyInstance,
  host: string,
  port: number,
  shared: SharedPorts | undefined,
): Promise<void> {
  // A name has to be looked up first, which only Node does.
  if (shared === undefined || isIP(host) === 0) {
    await app.listen({ port, host })
    return
  }
  const fd = shared.bind(host, port)
  // What Node takes the socket from; `port` and `host` are not looked at then.
  const options = { fd, port, host }
  await app.listen(options)
  shared.claim(fd)
}

function byPath(routes: readonly Route[]): ReadonlyMap<string, Route> {
  return new Map(routes.map((route) => [route.path, route]))
}

async function serve(
  request: FastifyRequest,
  reply: FastifyReply,
  routes: ReadonlyMap<string, Route>,
  onError: HttpOptions['onError'],
): Promise<FastifyReply> {
  const path = request.url.split('?', 1)[0] ?? ''
  const route = routes.get(path)
  if (route === undefined) return reply.code(404).type(TEXT).send('404 page not found\n')
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    return reply.code(405).header('allow', 'GET, HEAD').type(TEXT).send('405 method not allowed\n')
  }
  try {
    const { status, contentType, body } = await route.run()
    return reply.code(status).type(contentType).send(body)
  } catch (error) {
    onError(path, error)
    return reply.code(500).type(TEXT).send('500 internal server error\n')
  }
}

/** Splits `host:port`. The caller has checked that the port is one. */
function splitAddress(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon).replace(/^\[(.*)\]$/, '$1')
  return { host, port: Number(address.slice(colon + 1)) }
}
