import type { IncomingMessage, ServerResponse } from 'node:http'
import { Server as TlsServer } from 'node:https'
import { systemClock } from '../../base/clock.ts'
import { RefusalLog } from '../../base/telemetry/refusal-log.ts'
import type { AdminSite } from '../../plugin/admin.ts'
import { HttpServer, type SharedPorts, tlsOptionsOf } from '../http-server.ts'
import { checkRole, OTHER_SITE, refuse, roleOf } from './access.ts'
import { COMPANIONS, type Companion, type OptionalCompanion } from './companions.ts'
import {
  type Api,
  type ApiReply,
  type ApiRequest,
  loadFastify,
  type RequestError,
} from './fastify-library.ts'
import { forward, queryOf, serverOf } from './forward.ts'
import { ApiFault, refuseOctets, sendProblem } from './problem.ts'
import { ROUTES } from './routes.ts'
import type { Schema } from './schema.ts'
import { SCHEMAS } from './schemas.ts'

/** From a request to the end of its reply, as the client reads it. */
const REPLY_MS_MAX = 10_000
const BODY_OCTETS_MAX = 64 * 1024
const PARAMETER_CHARACTERS_MAX = 255

/** An open admin API. */
interface AdminListener {
  /** The actual port, if port 0 was requested. */
  readonly port: number
  /** Serves this site from the next request on. Its address and use of TLS are those of the site before. */
  use(site: AdminSite): void
  /** Stops accepting, lets requests in flight finish, frees the address. */
  close(): Promise<void>
}

/**
 * Opens an admin API. Rejects with InputError if the token or the certificate is invalid, or fastify or the files of a
 * companion are missing, or with the system's error if the address is not available.
 */
export async function openAdmin(
  site: AdminSite,
  shared: SharedPorts | undefined,
): Promise<AdminListener> {
  const service = new AdminService(site)
  await service.ready()
  await service.openCompanions()
  return {
    port: await service.server.listen(site.address, shared),
    use: (next) => service.use(next),
    close: () => service.server.close(),
  }
}

/** What is served, and a log of refused requests. */
interface Guarded {
  readonly site: AdminSite
  readonly refusals: RefusalLog
}

class AdminService {
  readonly server: HttpServer
  #guarded: Guarded
  readonly #companions = new Map<OptionalCompanion, Companion>()
  /** Why a changed certificate is not used, as logged; '' = nothing. */
  #certificateFault = ''
  #handle: (request: IncomingMessage, response: ServerResponse) => void = (_, response) => {
    response.end()
  }

  constructor(site: AdminSite) {
    this.#guarded = guard(site)
    this.server = new HttpServer({
      answer: (request, response) => this.#answer(request, response),
      replyMsMax: () => REPLY_MS_MAX,
      tls: site.certificate?.read(),
      checksHost: true,
    })
    // The listener of the TLS server makes a connection with the certificate that is set then.
    this.server.server.prependListener('connection', () => this.#followCertificate())
  }

  use(site: AdminSite): void {
    this.#guarded = guard(site)
    this.openCompanions().catch((error) => {
      site.log.error(error instanceof Error ? error.message : String(error), 'admin-failed')
    })
  }

  /** Opens what the site has on and is not open. Rejects with InputError if files are missing. */
  async openCompanions(): Promise<void> {
    for (const one of COMPANIONS) {
      if (!one.isOn(this.#guarded.site) || this.#companions.has(one)) continue
      this.#companions.set(one, (await one.load()).open())
    }
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { site } = this.#guarded
    try {
      for (const [one, companion] of this.#companions) {
        if (one.isOn(site) && companion.answer(site, request, response)) return
      }
    } catch (error) {
      const reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
      site.log.error(`${request.method} ${request.url}: ${reason}`, 'admin-failed')
      if (!response.headersSent) response.writeHead(500)
      response.end()
      return
    }
    this.#handle(request, response)
  }

  async ready(): Promise<void> {
    const fastify = await loadFastify()
    const api = fastify({
      bodyLimit: BODY_OCTETS_MAX,
      routerOptions: { maxParamLength: PARAMETER_CHARACTERS_MAX },
      exposeHeadRoutes: true,
      serverFactory: (handler) => {
        this.#handle = handler
        return this.server.server
      },
      // Unknown fields and values of another type are errors.
      ajv: { customOptions: { removeAdditional: false, coerceTypes: false, allErrors: false } },
      frameworkErrors: (error, request, reply) => this.#fail(error, request, reply),
      clientErrorHandler: refuseOctets,
    })
    this.#addRoutes(api)
    await api.ready()
  }

  #addRoutes(api: Api): void {
    for (const [name, schema] of Object.entries(SCHEMAS)) api.addSchema({ $id: name, ...schema })
    api.addHook('onRequest', async (request, reply) => {
      reply.header('cache-control', 'no-store').header('x-content-type-options', 'nosniff')
      reply.header('cross-origin-resource-policy', 'same-origin')
      checkHeaders(request)
      this.#admit(request, reply)
    })
    api.setErrorHandler((error, request, reply) => this.#fail(error, request, reply))
    api.setNotFoundHandler(({ method, url }, reply) => {
      const path = url.split('?', 1)[0]
      const methods = ROUTES.filter((route) => route.path === path).map(({ method }) => {
        return method === 'GET' ? 'GET, HEAD' : method
      })
      if (methods.length === 0) return sendProblem(reply, 404, `${path} is not a path of this API`)
      reply.header('allow', methods.join(', '))
      return sendProblem(reply, 405, `${method} is not a method of ${path}`)
    })
    for (const route of ROUTES) {
      const { method, path, requiredQuery = [], body, reply, run } = route
      const { role = method === 'GET' ? 'view' : 'operate', bodyOctetsMax = BODY_OCTETS_MAX } =
        route
      const query = queryOf(route)
      const schema = {
        querystring: {
          type: 'object',
          required: requiredQuery,
          properties: query,
          additionalProperties: false,
        },
        ...(body === undefined ? {} : { body }),
        ...(reply === undefined ? {} : { response: { 200: reply } }),
      }
      const handler = async (request: ApiRequest, sent: ApiReply) => {
        const { site } = this.#guarded
        return serverOf(request) === undefined
          ? run(site, request)
          : forward(site, route, request, sent)
      }
      const onRequest = async (request: ApiRequest, reply: ApiReply): Promise<void> => {
        checkRole(this.#guarded.site, request, reply, role)
        if (method !== 'GET') checkChange(request, body !== undefined)
      }
      const preValidation = async (request: ApiRequest): Promise<void> => {
        convertNumbers(request.query as Record<string, unknown>, query)
      }
      const hooks = { onRequest, preValidation, handler }
      api.route({ method, url: path, schema, bodyLimit: bodyOctetsMax, ...hooks })
    }
  }

  /** Throws ApiFault if the client may not use the API at all. */
  #admit(request: ApiRequest, reply: ApiReply): void {
    const { site, refusals } = this.#guarded
    const role = roleOf(site, request.raw)
    if (typeof role === 'string') return
    refusals.note(request.socket.remoteAddress ?? 'an unknown address', role.note)
    refuse(role, reply)
  }

  /** The client gets no details of a fault of the server. */
  #fail(error: RequestError, { method, url }: ApiRequest, reply: ApiReply): unknown {
    const status = error.validation === undefined ? (error.statusCode ?? 500) : 400
    if (status < 500 || error instanceof ApiFault) {
      return sendProblem(reply, status, `${error.message}${unknownField(error)}`)
    }
    this.#guarded.site.log.error(
      `${method} ${url}: ${error.stack ?? error.message}`,
      'admin-failed',
    )
    return sendProblem(reply, 500, 'the request failed; the log of the server has the reason')
  }

  /** Uses a changed certificate from the next connection on. */
  #followCertificate(): void {
    const { server } = this.server
    if (!(server instanceof TlsServer)) return
    try {
      const tls = this.#guarded.site.certificate?.readChanged()
      if (tls === undefined) return
      server.setSecureContext(tlsOptionsOf(tls))
      this.#certificateFault = ''
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      if (reason === this.#certificateFault) return
      this.#certificateFault = reason
      this.#guarded.site.log.error(
        `the old certificate is used: ${reason}`,
        'admin-certificate-kept',
      )
    }
  }
}

/** Names what the library leaves out of its message: the field that the schema does not have. */
function unknownField({ validation }: RequestError): string {
  const [first] = validation ?? []
  const field = first?.params.additionalProperty
  return field === undefined ? '' : `: ${JSON.stringify(field)}`
}

/** Throws ApiFault if it is ambiguous whom the request is from, or for (RFC 9112 section 3.2). */
function checkHeaders({ raw }: ApiRequest): void {
  const { authorization = [], host = [] } = raw.headersDistinct
  if (authorization.length > 1 || host.length > 1) {
    throw new ApiFault(400, 'the header `Authorization` or `Host` appears twice')
  }
  if (host.length === 0 && raw.httpVersion === '1.1') {
    throw new ApiFault(400, 'the header `Host` is missing')
  }
}

/** Converts the query parameters that are integers: in the URL they are texts. */
function convertNumbers(
  values: Record<string, unknown>,
  schemas: Readonly<Record<string, Schema>>,
): void {
  for (const [name, { type }] of Object.entries(schemas)) {
    const text = values[name]
    if (type === 'integer' && typeof text === 'string' && /^-?\d+$/.test(text)) {
      values[name] = Number(text)
    }
  }
}

/**
 * Throws ApiFault if a request of another method than GET may come from a web page: a browser sends
 * those without asking first if they have the content type of a form.
 */
function checkChange({ headers }: ApiRequest, hasBody: boolean): void {
  const { origin, host, 'sec-fetch-site': site = 'none' } = headers
  const isOwn = origin === undefined || /^https?:\/\/(.*)$/.exec(origin)?.[1] === host
  if (!isOwn || (site !== 'none' && site !== 'same-origin')) {
    throw new ApiFault(403, OTHER_SITE)
  }
  const [type = ''] = (headers['content-type'] ?? '').split(';', 1)
  if (hasBody && type.trim().toLowerCase() !== 'application/json') {
    throw new ApiFault(415, 'the request needs the header `Content-Type: application/json`')
  }
}

function guard(site: AdminSite): Guarded {
  const print = (host: string): string => `request of ${host} is refused`
  return { site, refusals: new RefusalLog(site.log, systemClock, print) }
}
