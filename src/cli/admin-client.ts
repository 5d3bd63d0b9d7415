import { X509Certificate } from 'node:crypto'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { request as requestTls } from 'node:https'
import { TLSSocket } from 'node:tls'
import { InputError } from '../base/errors.ts'
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
  return new Promise((resolve, reject) => {
    const headers = {
      ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    }
    const signal = AbortSignal.timeout(REPLY_MS_MAX)
    const place = socket === '' ? {} : { socketPath: socket }
    const options = { method, headers, agent: false as const, signal, ...place }
    const url = new URL(path, origin)
    const read = (response: IncomingMessage): void => {
      readAll(response, sent)
        .then((text) => resolve({ status: response.statusCode ?? 0, body: text }))
        .catch(reject)
    }
    const isPinned = certificate !== undefined
    const tls = { ...(ca === undefined ? {} : { ca }), rejectUnauthorized: !isPinned }
    const isTls = url.protocol === 'https:'
    const sent = isTls ? requestTls(url, { ...options, ...tls }, read) : request(url, options, read)
    sent.on('error', reject)
    // Without a listener, Node.js closes the connection and reports nothing.
    sent.on('upgrade', (_response, socket) => {
      socket.destroy()
      reject(new Error('the reply is not that of an admin API (status 101)'))
    })
    const send = (): void => void sent.end(body === undefined ? undefined : JSON.stringify(body))
    if (isTls && isPinned) sendOnceVerified(sent, certificate, send)
    else send()
  })
}

/** The token must not reach another server, so the headers are sent after the handshake. */
function sendOnceVerified(sent: ClientRequest, certificate: string, send: () => void): void {
  sent.once('socket', (socket) => {
    socket.once('secureConnect', () => {
      const wanted = new X509Certificate(certificate).raw
      const found = socket instanceof TLSSocket ? socket.getPeerX509Certificate()?.raw : undefined
      if (found?.equals(wanted) === true) send()
      else sent.destroy(new Error('the server has another certificate than the file of `tls`'))
    })
  })
}

async function readAll(response: IncomingMessage, sent: ClientRequest): Promise<string> {
  const pieces: Buffer[] = []
  let octets = 0
  for await (const piece of response) {
    octets += piece.length
    pieces.push(piece)
    if (octets > REPLY_OCTETS_MAX) sent.destroy(new Error('the reply is too long'))
  }
  return Buffer.concat(pieces).toString()
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
