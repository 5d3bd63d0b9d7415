import { InputError } from '../base/errors.ts'
import { exchangeHttp } from '../base/http-exchange.ts'
import type { AdminTarget } from './admin-target.ts'

/** From the start of a request to the end of its reply. */
const REPLY_MS_MAX = 15_000
const REPLY_OCTETS_MAX = 256 * 1024 * 1024

interface AdminRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** With its query. */
  readonly path: string
  /** Sent as JSON; undefined = no body. */
  readonly body?: unknown
}

/**
 * Sends a request to an admin API, and returns the JSON of its reply. Rejects with InputError of one line if the server
 * can't be reached, or refuses the request.
 */
export async function askAdmin(target: AdminTarget, asked: AdminRequest): Promise<unknown> {
  const { origin } = target
  const { status, body } = await exchange(target, asked).catch((error) => {
    throw new InputError(undefined, faultOf(error, origin), error)
  })
  const json = readJson(body)
  if (status === 200 && json !== undefined) return json
  const detail = typeof json === 'object' && json !== null && 'detail' in json && json.detail
  if (typeof detail !== 'string')
    throw new InputError(
      undefined,
      `${origin}: the reply is not that of an admin API (status ${status})`,
    )
  const cure = status === 401 ? '; use --token-file' : ''
  throw new InputError(undefined, `${origin}: ${detail}${cure}`)
}

/** The error for a reply that does not have the expected form. `what`: what was expected. */
export function otherReply(what: string): InputError {
  const fix = 'use the same version of sextant as the server'
  return new InputError(undefined, `the server did not reply with ${what}; ${fix}`)
}

/**
 * Returns what `read` makes of a reply. Throws `otherReply(what)` if `read` fails because the reply has other members
 * than expected, or is nested too deep.
 */
export function readReply<T>(what: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) throw otherReply(what)
    throw error
  }
}

function exchange(
  { origin, socket, token, ca, certificate }: AdminTarget,
  { method, path, body }: AdminRequest,
): Promise<{ status: number; body: string }> {
  return exchangeHttp({
    url: new URL(path, origin),
    method,
    headers: {
      ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    body: body === undefined ? undefined : JSON.stringify(body),
    socketPath: socket,
    ca,
    certificate,
    octetsMax: REPLY_OCTETS_MAX,
    signal: AbortSignal.timeout(REPLY_MS_MAX),
  })
}

function faultOf(error: unknown, origin: string): string {
  if (!(error instanceof Error)) return `${origin}: ${error}`
  const code = 'code' in error ? error.code : ''
  if (code === 'ECONNREFUSED') {
    return `no server listens on ${origin}; start it with the directive admin, or name another address`
  }
  if (code === 'ECONNRESET')
    return `${origin}: the server closed the connection without a reply; is this its admin port?`
  if (code === 'EPROTO')
    return `${origin}: the server does not use TLS there; write @${origin.replace('https', 'http')}`
  const isTimeout = error.name === 'TimeoutError' || code === 'ABORT_ERR'
  if (isTimeout) return `${origin}: no complete reply within ${REPLY_MS_MAX / 1000} seconds`
  return `${origin}: ${error.message}`
}

/** Undefined if the text is not JSON. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
