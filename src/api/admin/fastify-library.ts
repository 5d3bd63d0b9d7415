import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { InputError } from '../../base/errors.ts'

/** The part of a request that routes read. */
export interface ApiRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly raw: Pick<IncomingMessage, 'headers' | 'headersDistinct' | 'httpVersion'>
  readonly socket: IncomingMessage['socket']
  /** Valid according to the schema of the route. */
  readonly query: unknown
  readonly body: unknown
  readonly params: unknown
}

export interface ApiReply {
  code(status: number): ApiReply
  header(name: string, value: string): ApiReply
  type(contentType: string): ApiReply
  send(payload: unknown): ApiReply
}

/** An error of a hook or a route, or of the library itself. */
export interface RequestError extends Error {
  readonly statusCode?: number
  /** Set if the request does not match the schema of the route. */
  readonly validation?: readonly { readonly params: { readonly additionalProperty?: string } }[]
}

interface ApiRoute {
  readonly method: string
  readonly url: string
  readonly schema: object
  readonly bodyLimit: number
  /** Runs before the body is read. */
  readonly onRequest: (request: ApiRequest, reply: ApiReply) => Promise<void>
  /** Runs before the schema is applied. */
  readonly preValidation: (request: ApiRequest) => Promise<void>
  readonly handler: (request: ApiRequest, reply: ApiReply) => Promise<unknown>
}

/** An application of fastify. */
export interface Api {
  addSchema(schema: object): unknown
  addHook(name: 'onRequest', hook: (request: ApiRequest, reply: ApiReply) => Promise<void>): unknown
  route(route: ApiRoute): unknown
  setNotFoundHandler(handler: (request: ApiRequest, reply: ApiReply) => unknown): unknown
  setErrorHandler(
    handler: (error: RequestError, request: ApiRequest, reply: ApiReply) => unknown,
  ): unknown
  ready(): PromiseLike<unknown>
}

interface ApiOptions {
  readonly bodyLimit: number
  readonly routerOptions: { readonly maxParamLength: number }
  readonly exposeHeadRoutes: boolean
  readonly serverFactory: (
    handler: (request: IncomingMessage, response: ServerResponse) => void,
  ) => Server
  readonly ajv: { readonly customOptions: object }
  readonly frameworkErrors: (error: RequestError, request: ApiRequest, reply: ApiReply) => unknown
  /** Called for octets that are not a request. */
  readonly clientErrorHandler: (error: NodeJS.ErrnoException, socket: Socket) => void
}

type Fastify = (options: ApiOptions) => Api

/**
 * Loads the package fastify, which is an optional dependency: only servers with an admin API need it. Rejects with
 * InputError if it is not installed.
 */
export async function loadFastify(): Promise<Fastify> {
  // A variable, so that the build does not need the package.
  const name = 'fastify'
  try {
    const library: { readonly fastify: Fastify } = await import(name)
    return library.fastify
  } catch (error) {
    const message =
      'directive admin needs the package fastify: install it with `npm install fastify`'
    throw new InputError(undefined, message, error)
  }
}
