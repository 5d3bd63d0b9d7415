import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { InputError } from '../../base/errors.ts'
import type { ApiReply } from './fastify-library.ts'

const PROBLEM_TYPE = 'application/problem+json; charset=utf-8'
const NO_REQUEST = { status: 400, detail: 'the octets are not an HTTP/1.1 request' }
/** By error code of Node. */
const OCTET_FAULTS: Readonly<Record<string, { status: number; detail: string }>> = {
  HPE_HEADER_OVERFLOW: { status: 431, detail: 'the headers are longer than 8 KiB' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, detail: 'the request took too long to arrive' },
}

/** A problem document (RFC 9457). */
export interface Problem {
  readonly type: 'about:blank'
  readonly title: string
  readonly status: number
  readonly detail: string
}

/** The reply of a route to a request that can't be answered. */
export class ApiFault extends Error {
  readonly statusCode: number

  constructor(statusCode: number, message: string) {
    super(message)
    this.statusCode = statusCode
  }
}

/** Rejects with ApiFault if the request is invalid. */
export async function attempt<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    throw new ApiFault(400, error.print())
  }
}

/** Replies with a problem document. */
export function sendProblem(reply: ApiReply, status: number, detail: string): ApiReply {
  // As text: the schema of the route describes another body.
  return reply.code(status).type(PROBLEM_TYPE).send(composeProblem(status, detail))
}

/**
 * Replies to octets that are not a request, or to a request that is too long or too slow, and ends the connection. Ends
 * it without a reply after an error of TLS: a reply would wait for a handshake that does not come.
 */
export function refuseOctets({ code = '' }: NodeJS.ErrnoException, socket: Socket): void {
  const fault = OCTET_FAULTS[code] ?? (code.startsWith('HPE_') ? NO_REQUEST : undefined)
  if (fault === undefined || !socket.writable) {
    socket.destroy()
    return
  }
  const { status, detail } = fault
  const body = composeProblem(status, detail)
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `content-type: ${PROBLEM_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
}

function composeProblem(status: number, detail: string): string {
  const title = STATUS_CODES[status] ?? 'Error'
  const problem: Problem = { type: 'about:blank', title, status, detail }
  return JSON.stringify(problem)
}
