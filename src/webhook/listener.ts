import type { IncomingMessage, ServerResponse } from 'node:http'
import { HttpServer } from '../api/http-server.ts'
import { isLocalName } from '../base/loopback.ts'
import { reasonOf } from '../base/system-error.ts'
import { escapeControls, type Logger } from '../base/telemetry/log.ts'
import type { Counter, MetricsRegistry } from '../base/telemetry/metrics.ts'
import { InvalidBody, printEndpoints, scanChanges, scanEndpoints } from './external-endpoint.ts'
import type { WebhookProvider } from './provider.ts'
import { StoreUnavailable } from './record-store.ts'

/** The media type of the protocol. external-dns compares it letter by letter. */
export const MEDIA_TYPE = 'application/external.dns.webhook+json;version=1'
const TEXT = 'text/plain; charset=utf-8'
export const BODY_OCTETS_MAX = 10 * 1024 * 1024
/** From a request to the end of its reply: a first plan may write thousands of records. */
const REPLY_MS_MAX = 120_000

interface ListenerOptions {
  /** `host:port`. */
  readonly address: string
  /** True: requests need a `Host` header with a local name. */
  readonly isLocal: boolean
  readonly provider: WebhookProvider
  readonly log: Logger
  readonly metrics: MetricsRegistry
}

interface Reply {
  readonly status: number
  readonly contentType: string
  readonly body: string
}

/** A request that is answered with an error. */
class Fault extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

interface Route {
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** True: the reply has the media type of the protocol, and the client must accept it. */
  readonly isNegotiated: boolean
  readonly run: (provider: WebhookProvider, body: string) => Promise<string> | string
}

const ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/',
    isNegotiated: true,
    run: ({ filter }) => JSON.stringify(filter),
  },
  {
    method: 'GET',
    path: '/records',
    isNegotiated: true,
    run: async (provider) => printEndpoints(await provider.records()),
  },
  {
    method: 'POST',
    path: '/records',
    isNegotiated: false,
    run: async (provider, body) => {
      const { failures } = await provider.apply(scanChanges(body))
      // external-dns ends at a status below 500, and repeats the plan at another one.
      if (failures.length > 0) throw new Fault(500, failures.join('\n'))
      return ''
    },
  },
  {
    method: 'POST',
    path: '/adjustendpoints',
    isNegotiated: true,
    run: async (provider, body) => printEndpoints(await provider.adjust(scanEndpoints(body))),
  },
  { method: 'GET', path: '/healthz', isNegotiated: false, run: () => 'ok\n' },
]

/** The HTTP side of the webhook protocol. */
export class WebhookListener {
  readonly #options: ListenerOptions
  readonly #server: HttpServer
  readonly #requests: Counter
  /** Why requests failed last, as logged, by route: external-dns repeats them every minute. */
  readonly #faults = new Map<string, string>()

  constructor(options: ListenerOptions) {
    this.#options = options
    this.#requests = options.metrics.counter(
      'sextant_webhook_requests_total',
      'Requests of external-dns.',
      ['path', 'status'],
    )
    this.#server = new HttpServer({
      answer: (request, response) => void this.#answer(request, response),
      replyMsMax: () => REPLY_MS_MAX,
    })
  }

  /** Resolves to the port. Rejects if the address is not available. */
  listen(): Promise<number> {
    return this.#server.listen(this.#options.address, undefined)
  }

  close(): Promise<void> {
    return this.#server.close()
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '').split('?', 1)[0] ?? ''
    const { status, contentType, body } = await this.#reply(path, request, response)
    const known = ROUTES.some((route) => route.path === path) ? path : 'other'
    this.#requests.inc({ path: known, status: String(status) })
    if (response.destroyed) return
    // The rest of a body that was not read would be the next request.
    if (!request.complete) response.setHeader('connection', 'close')
    response.setHeader('cache-control', 'no-store')
    if (body !== '') {
      response.setHeader('content-type', contentType)
      response.setHeader('content-length', Buffer.byteLength(body))
    }
    response.writeHead(status)
    response.end(body)
  }

  async #reply(path: string, request: IncomingMessage, response: ServerResponse): Promise<Reply> {
    const what = `${request.method} ${path}`
    try {
      const route = this.#route(path, request, response)
      const text = route.method === 'POST' ? await readBody(request) : ''
      const body = await route.run(this.#options.provider, text)
      this.#faults.delete(what)
      if (route.isNegotiated) return { status: 200, contentType: MEDIA_TYPE, body }
      return { status: body === '' ? 204 : 200, contentType: TEXT, body }
    } catch (error) {
      const status = statusOf(error)
      const reason = reasonOf(error)
      if (!(error instanceof Fault) || status >= 500) this.#report(what, status, reason)
      return { status, contentType: TEXT, body: `${escapeControls(reason)}\n` }
    }
  }

  /** Checks the head of the request. Throws Fault. */
  #route(path: string, { method, headers }: IncomingMessage, response: ServerResponse): Route {
    if (this.#options.isLocal && !isLocalName(headers.host, [])) {
      throw new Fault(403, 'the Host header must be an address or localhost')
    }
    const ofPath = ROUTES.filter((route) => route.path === path)
    if (ofPath.length === 0) throw new Fault(404, 'the path is not one of the webhook protocol')
    const wanted = method === 'HEAD' ? 'GET' : method
    const route = ofPath.find((one) => one.method === wanted)
    if (route === undefined) {
      response.setHeader('allow', ofPath.map((one) => one.method).join(', '))
      throw new Fault(405, `the method must be ${ofPath.map((one) => one.method).join(' or ')}`)
    }
    if (route.isNegotiated && !accepts(headers.accept)) {
      throw new Fault(406, `the header Accept must allow ${MEDIA_TYPE}`)
    }
    if (route.method === 'POST') checkBody(headers)
    return route
  }

  #report(what: string, status: number, reason: string): void {
    if (this.#faults.get(what) === reason) return
    this.#faults.set(what, reason)
    this.#options.log.error(`webhook: ${what} failed with ${status}: ${reason}`, 'webhook-failed')
  }
}

function statusOf(error: unknown): number {
  if (error instanceof Fault) return error.status
  if (error instanceof InvalidBody) return 400
  return error instanceof StoreUnavailable ? 503 : 500
}

/** A missing header accepts everything. */
function accepts(header = '*/*'): boolean {
  return header.split(',').some((range) => {
    const [type = '', ...parameters] = normalize(range).split(';')
    if (type === '*/*' || type === 'application/*') return true
    const version = parameters.find((one) => one.startsWith('version='))
    return MEDIA_TYPE.startsWith(`${type};`) && (version ?? 'version=1') === 'version=1'
  })
}

function normalize(mediaType: string): string {
  return mediaType.replaceAll(/[\s"]/g, '').toLowerCase()
}

/** Throws Fault. */
function checkBody(headers: IncomingMessage['headers']): void {
  if (normalize(headers['content-type'] ?? '') !== MEDIA_TYPE) {
    throw new Fault(415, `the header Content-Type must be ${MEDIA_TYPE}`)
  }
  if (!['', 'identity'].includes(headers['content-encoding'] ?? '')) {
    throw new Fault(415, 'the header Content-Encoding must be missing')
  }
  if (Number(headers['content-length'] ?? 0) > BODY_OCTETS_MAX) throw tooLong()
}

function tooLong(): Fault {
  return new Fault(413, `the body has more than ${BODY_OCTETS_MAX} octets`)
}

/** Throws Fault if the body is too long or cut short, or InvalidBody if it is not UTF-8. */
async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = []
  let octets = 0
  try {
    // The connection is still needed for the reply.
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      octets += chunk.length
      if (octets > BODY_OCTETS_MAX) throw tooLong()
      chunks.push(chunk)
    }
  } catch (error) {
    throw error instanceof Fault ? error : new Fault(400, 'the body was cut short')
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks, octets))
  } catch (error) {
    throw new InvalidBody('the body is not UTF-8', { cause: error })
  }
}
