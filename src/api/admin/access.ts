import type { IncomingMessage } from 'node:http'
import { isLocalName } from '../../base/loopback.ts'
import type { AdminRole, AdminSite } from '../../plugin/admin.ts'
import type { AdminSession } from '../../plugin/admin-session.ts'
import type { ApiReply, ApiRequest } from './fastify-library.ts'
import { ApiFault } from './problem.ts'

/** Headers that a proxy adds: the client of its request may be on another machine. */
const PROXY_HEADER =
  /^(?:forwarded|via|x-(?:forwarded|envoy)-.*|(?:x-real|x-client|true-client|cf-connecting)-ip)$/
/** Detail of a refusal. */
export const OTHER_SITE = 'web pages of other sites may not use this API'
const NEEDS_TOKEN = 'the request needs the header `Authorization: Bearer TOKEN` with a valid token'

/** Why a client may not use the API. */
interface Refusal {
  readonly status: 401 | 403
  readonly detail: string
  /** For the log. */
  readonly note: string
}

/** Returns the role of the client of a request, or why it may not use the API. */
export function roleOf(
  site: AdminSite,
  request: Pick<IncomingMessage, 'headers' | 'httpVersion'>,
): AdminRole | Refusal {
  const { tokens, hosts, readsOpenly } = site
  const { headers } = request
  const role = tokens?.roleOf(headers.authorization)
  if (role !== undefined) return role
  // A web page can make a browser on this machine send requests, if a name of the page resolves to loopback.
  const isLocal = isLocalName(headers.host, hosts)
  const isOpen = readsOpenly && isLocal && headers.authorization === undefined && isDirect(request)
  if (tokens !== undefined && !isOpen) {
    return { status: 401, detail: NEEDS_TOKEN, note: tokens.fault || 'no valid token' }
  }
  if (!isLocal) {
    const detail = 'the Host header must be an address, localhost, or a name of `host`'
    return { status: 403, detail, note: 'the Host header is not a local name' }
  }
  if (isOfOtherSite(request)) {
    return { status: 403, detail: OTHER_SITE, note: 'a web page of another site' }
  }
  return tokens === undefined ? 'operate' : 'view'
}

/** False for what a proxy sends. Many use HTTP/1.0 by default, which browsers never do. */
function isDirect({ headers, httpVersion }: Parameters<typeof roleOf>[1]): boolean {
  return httpVersion !== '1.0' && !Object.keys(headers).some((name) => PROXY_HEADER.test(name))
}

/** True if a browser sends it for a web page of another site, which does not only lead its user here. */
function isOfOtherSite({ headers }: Parameters<typeof roleOf>[1]): boolean {
  const { 'sec-fetch-site': site = 'none', 'sec-fetch-dest': destination } = headers
  return site !== 'none' && site !== 'same-origin' && destination !== 'document'
}

/** Throws ApiFault if the role of the client does not suffice. `role`: of the operation. */
export function checkRole(
  site: AdminSite,
  request: ApiRequest,
  reply: ApiReply,
  role: AdminRole,
): void {
  const own = roleOf(site, request.raw)
  if (own === role || own === 'operate') return
  if (typeof own !== 'string') refuse(own, reply)
  if (request.headers.authorization === undefined) {
    const detail = `${NEEDS_TOKEN} of the role \`operate\`: without a token, this server can only be read`
    refuse({ status: 401, detail, note: '' }, reply)
  }
  throw new ApiFault(403, 'the token has the role `view`: this operation needs the role `operate`')
}

/** Throws the ApiFault of a refusal. */
export function refuse({ status, detail }: Refusal, reply: ApiReply): never {
  if (status === 401) reply.header('www-authenticate', 'Bearer realm="sextant"')
  throw new ApiFault(status, detail)
}

/** Returns what the client of an admitted request may do. */
export function sessionOf(site: AdminSite, request: ApiRequest): AdminSession {
  const own = roleOf(site, request.raw)
  const role = typeof own === 'string' ? own : 'view'
  const { headers } = request
  return {
    role,
    mayAct: role === 'operate',
    reason: role === 'operate' ? '' : reasonOf(site, headers.authorization !== undefined),
    hasTokens: site.tokens !== undefined,
  }
}

function reasonOf({ tokens }: AdminSite, hasToken: boolean): string {
  const fault = tokens?.fault ?? ''
  if (hasToken) return 'the token has the role `view`; acts need a token with the role `operate`'
  return `acts need a token with the role \`operate\`${fault === '' ? '' : `; ${fault}`}`
}
