import { request } from 'node:http'
import type { ListedName, PolicyNames } from '../egress/agent/api/names-api.ts'

/** From the start of a request to the end of its reply. */
export const REPLY_MS_MAX = 30_000
/** A string of Node.js has about 500 MiB. */
const REPLY_OCTETS_MAX = 256 * 1024 * 1024

/** A request to the API of the node agent; `path` with its query. */
export interface NodeRequest {
  readonly socket: string
  readonly method: 'GET' | 'DELETE'
  readonly path: string
  readonly timeoutMs: number
}

export interface NodeReply {
  readonly status: number
  readonly body: string
}

/** Sends a request to the node agent. Rejects with an Error that says what to do if there is no whole reply. */
export async function askNode(asked: NodeRequest): Promise<NodeReply> {
  try {
    return await exchange(asked)
  } catch (error) {
    throw new Error(faultOf(error, asked))
  }
}

/** Returns the list of a reply. Throws an Error if it is something else. */
export function readNames({ body }: NodeReply): readonly ListedName[] {
  const list = readJson(body)
  if (Array.isArray(list) && list.every(isListedName)) return list
  throw new Error('the reply is not a list of names; is this the socket of a node agent?')
}

/** Returns the selectors of a reply. Throws an Error if it is something else. */
export function readSelectors({ body }: NodeReply): PolicyNames {
  const names = readJson(body)
  if (isRecord(names) && Array.isArray(names.FQDNPolicySelectors)) return names as never
  throw new Error('the reply is not a list of selectors; is this the socket of a node agent?')
}

/** Why a request failed, for people. */
export function refusalOf({ status, body }: NodeReply): string {
  const fault = readJson(body)
  if (typeof fault === 'string' && fault !== '') return fault
  return body.trim() === '' ? `the node agent replied with status ${status}` : body.trim()
}

function exchange({ socket, method, path, timeoutMs }: NodeRequest): Promise<NodeReply> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(timeoutMs)
    const options = { socketPath: socket, method, path, agent: false, signal }
    const sent = request(options, (response) => {
      const pieces: Buffer[] = []
      let octets = 0
      response.on('data', (piece: Buffer) => {
        octets += piece.length
        if (octets > REPLY_OCTETS_MAX) sent.destroy(new Error('the reply is too long'))
        else pieces.push(piece)
      })
      response.on('error', reject)
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(pieces).toString() })
      })
    })
    sent.on('error', reject)
    sent.end()
  })
}

function faultOf(error: unknown, { socket, timeoutMs }: NodeRequest): string {
  const isError = error instanceof Error
  const code = isError && 'code' in error ? error.code : ''
  if (code === 'ENOENT' || code === 'ECONNREFUSED') {
    return `no node agent listens on ${socket}; start \`sextant node\`, or use --socket`
  }
  if (code === 'EACCES' || code === 'EPERM') {
    return `no permission for ${socket}; run this as the user of the node agent`
  }
  const isTimeout = isError && (error.name === 'TimeoutError' || code === 'ABORT_ERR')
  if (isTimeout) return `${socket}: no whole reply within ${timeoutMs / 1000} seconds`
  return `${socket}: ${isError ? error.message : error}`
}

function isListedName(one: unknown): one is ListedName {
  if (!isRecord(one)) return false
  const texts = [one.fqdn, one['lookup-time'], one['expiration-time'], one['endpoint-id']]
  return (
    [...texts, one.source].every((text) => typeof text === 'string') &&
    typeof one.ttl === 'number' &&
    Array.isArray(one.ips)
  )
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

/** Undefined if the text is not JSON. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
