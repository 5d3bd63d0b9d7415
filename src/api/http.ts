import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HttpEndpoint, HttpReply } from '../plugin/description.ts'
import { HttpServer, type SharedPorts } from './http-server.ts'

/** One GET endpoint. */
export type Route = Omit<HttpEndpoint, 'address'>

/** An open HTTP address. */
export interface HttpListener {
  /** The actual port, if port 0 was requested. */
  readonly port: number
  /** Serves these routes from the next request on. */
  use(routes: readonly Route[]): void
  /** Stops accepting, lets requests in flight finish, frees the address. */
  close(): Promise<void>
}

interface HttpOptions {
  /** `host:port`, `[v6]:port` or `:port` for every address. */
  readonly address: string
  readonly routes: readonly Route[]
  /** Called with the error of an endpoint. The client only gets the status. */
  readonly onError: (path: string, error: unknown) => void
  /** Opens addresses that can be handed over to a later process; undefined = they cannot. */
  readonly reusePortBinder?: SharedPorts | undefined
}

/** From a request to the end of its reply, as the client reads it. */
const REPLY_MS_MAX = 5_000
const TEXT = 'text/plain; charset=utf-8'

const NOT_FOUND: HttpReply = { status: 404, contentType: TEXT, body: '404 page not found\n' }
const NO_METHOD: HttpReply = { status: 405, contentType: TEXT, body: '405 method not allowed\n' }
const FAILED: HttpReply = { status: 500, contentType: TEXT, body: '500 internal server error\n' }

/**
 * Opens an HTTP address. Only GET and HEAD, no bodies; an unknown path is 404, another method 405.
 * Rejects if the address can't be bound.
 */
export async function openHttp(options: HttpOptions): Promise<HttpListener> {
  const { address, onError, reusePortBinder } = options
  let routes = byPath(options.routes)
  const server = new HttpServer({
    answer: (request, response) => void answer(routes, request, response, onError),
    replyMsMax: ({ url }) => routes.get(splitUrl(url)[0])?.replyMsMax ?? REPLY_MS_MAX,
  })
  return {
    port: await server.listen(address, reusePortBinder),
    use: (wanted) => {
      routes = byPath(wanted)
    },
    close: () => server.close(),
  }
}

async function answer(
  routes: ReadonlyMap<string, Route>,
  request: IncomingMessage,
  response: ServerResponse,
  onError: HttpOptions['onError'],
): Promise<void> {
  const [path, query] = splitUrl(request.url)
  const route = routes.get(path)
  if (route === undefined) return send(response, NOT_FOUND)
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD')
    return send(response, NO_METHOD)
  }
  try {
    const { accept = '' } = request.headers
    send(response, await route.reply(new URLSearchParams(query), accept))
  } catch (error) {
    onError(path, error)
    send(response, FAILED)
  }
}

/** Returns the path and the query of the target of a request. */
function splitUrl(url = ''): [string, string] {
  const at = url.indexOf('?')
  return at === -1 ? [url, ''] : [url.slice(0, at), url.slice(at + 1)]
}

function send(response: ServerResponse, { status, contentType, body }: HttpReply): void {
  const octets = Buffer.byteLength(body)
  response.writeHead(status, { 'content-type': contentType, 'content-length': octets })
  response.end(body)
}

function byPath(routes: readonly Route[]): ReadonlyMap<string, Route> {
  return new Map(routes.map((route) => [route.path, route]))
}
