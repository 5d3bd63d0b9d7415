import { STATUS_CODES } from 'node:http'
import type { ApiReply } from './fastify-library.ts'

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

/** Replies with a problem document. */
export function sendProblem(reply: ApiReply, status: number, detail: string): ApiReply {
  const title = STATUS_CODES[status] ?? 'Error'
  const problem: Problem = { type: 'about:blank', title, status, detail }
  // As text: the schema of the route describes another body.
  return reply.code(status).type('application/problem+json').send(JSON.stringify(problem))
}
