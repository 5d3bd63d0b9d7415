import type { AdminSite } from '../../plugin/admin.ts'
import type { AdminRoute } from './admin-route.ts'
import type { ApiReply, ApiRequest } from './fastify-library.ts'
import { hasForm } from './has-form.ts'
import { ApiFault } from './problem.ts'
import type { Schema } from './schema.ts'
import { SCHEMAS } from './schemas.ts'

/** Operations that this server can send to another one. None of them changes anything. */
const FORWARDED: ReadonlySet<string> = new Set([
  'GET /v1/status',
  'GET /v1/events',
  'GET /v1/drains',
  'GET /v1/names',
  'GET /v1/map',
  'GET /v1/traffic',
  'GET /v1/health',
  'GET /v1/shifts',
  'POST /v1/explain',
])

const SERVER: Schema = {
  type: 'string',
  minLength: 1,
  maxLength: 63,
  description: 'the name of another server, which replies instead',
}

/** Returns the schemas of the query parameters of an operation. */
export function queryOf({
  method,
  path,
  query = {},
}: AdminRoute): Readonly<Record<string, Schema>> {
  return FORWARDED.has(`${method} ${path}`) ? { ...query, server: SERVER } : query
}

/** Returns the server that a request is for; undefined = this one. */
export function serverOf({ query }: ApiRequest): string | undefined {
  return (query as { readonly server?: string }).server
}

/**
 * Sends a request to another server of the fleet. Returns its reply as text, if it has the form that clients expect.
 * The request has no parameter `server`, so that the other server can't send it on. Throws ApiFault.
 */
export async function forward(
  { fleet }: AdminSite,
  { method, path, reply: schema }: AdminRoute,
  { query, body }: ApiRequest,
  reply: ApiReply,
): Promise<unknown> {
  const { server, ...parameters } = query as { readonly server: string }
  const given = Object.entries<unknown>(parameters).map(
    ([key, value]) => [key, String(value)] as const,
  )
  const search = given.length === 0 ? '' : `?${new URLSearchParams(Object.fromEntries(given))}`
  const answer = await fleet.ask(server, {
    method: method === 'POST' ? 'POST' : 'GET',
    path: `${path}${search}`,
    body: body ?? undefined,
  })
  if (answer.kind === 'fault')
    throw new ApiFault(answer.status, `server ${server}: ${answer.detail}`)
  const text = hasForm(answer.json, schema ?? {}, SCHEMAS) ? print(answer.json) : undefined
  if (text === undefined) {
    throw new ApiFault(
      502,
      `server ${server}: the reply has another form; is its version another one?`,
    )
  }
  // As text: the schema of the route would refuse members of a later version.
  reply.type('application/json; charset=utf-8')
  return text
}

/** Undefined = the value is nested too deep. */
function print(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}
