import { isLocalAddress, isLocalName } from '../../base/loopback.ts'
import type { AdminRole, AdminSite } from '../../plugin/admin.ts'
import type { AdminSession } from '../../plugin/admin-session.ts'
import type { ApiReply, ApiRequest } from './fastify-library.ts'
import { ApiFault } from './problem.ts'

/** Headers that a proxy adds: the client of its request may be on another machine. */
const PROXY_HEADERS = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip']
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
  { headers }: Pick<ApiRequest, 'headers'>,
): AdminRole | Refusal {
  const { tokens, hosts, readsOpenly } = site
  // A web page can make a browser on this machine send requests, if a name of the page resolves to loopback.
  const isLocal = isLocalName(headers.host, hosts)
  if (tokens === undefined) {
    if (isLocal) return 'operate'
    const detail = 'the Host header must be an address, localhost, or a name of `host`'
    return { status: 403, detail, note: 'the Host header is not a local name' }
  }
  const role = tokens.roleOf(headers.authorization)
  if (role !== undefined) return role
  const isDirect = PROXY_HEADERS.every((name) => headers[name] === undefined)
  if (headers.authorization === undefined && readsOpenly && isLocal && isDirect) return 'view'
  return { status: 401, detail: NEEDS_TOKEN, note: tokens.fault || 'no valid token' }
}

/** Throws ApiFault if the role of the client does not suffice. `role`: of the operation. */
export function checkRole(
  site: AdminSite,
  request: ApiRequest,
  reply: ApiReply,
  role: AdminRole,
): void {
  const own = roleOf(site, request)
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
  const own = roleOf(site, request)
  const role = typeof own === 'string' ? own : 'view'
  const { headers, socket } = request
  const isLocal = isLocalAddress(socket.remoteAddress ?? '')
  return {
    role,
    mayAct: role === 'operate',
    reason: role === 'operate' ? '' : reasonOf(site, headers.authorization !== undefined),
    hasTokens: site.tokens !== undefined,
    isPlain: site.certificate === undefined && !isLocal,
  }
}

function reasonOf({ tokens }: AdminSite, hasToken: boolean): string {
  const fault = tokens?.fault ?? ''
  if (hasToken) return 'the token has the role `view`; acts need a token with the role `operate`'
  return `acts need a token with the role \`operate\`${fault === '' ? '' : `; ${fault}`}`
}
