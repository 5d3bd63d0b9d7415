import { VERSION } from '../../base/version.ts'
import type { AdminRoute } from './admin-route.ts'
import { queryOf } from './forward.ts'
import type { Schema } from './schema.ts'
import { SCHEMAS } from './schemas.ts'

/** Returns the OpenAPI 3.1 document of these operations. */
export function composeOpenApi(routes: readonly AdminRoute[]): Schema {
  const paths: Record<string, Record<string, Schema>> = {}
  for (const route of routes) {
    paths[route.path] ??= {}
    paths[route.path]![route.method.toLowerCase()] = operationOf(route)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sextant admin API',
      version: VERSION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ token: [] }],
    paths,
    components: {
      schemas: withReferences(SCHEMAS),
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    },
  }
}

function operationOf(route: AdminRoute): Schema {
  const { method, path, summary, requiredQuery = [], body, reply } = route
  const parameters = Object.entries(queryOf(route)).map(([name, { description, ...schema }]) => {
    const required = requiredQuery.includes(name)
    return {
      name,
      in: 'query',
      required,
      schema,
      ...(description === undefined ? {} : { description }),
    }
  })
  const words = path.split(/\W+/).filter((word) => word !== '' && word !== 'v1')
  return {
    operationId: [method.toLowerCase(), ...words].join('_'),
    summary,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined ? {} : { requestBody: { required: true, content: json(body) } }),
    responses: {
      200: { description: 'Success', content: json(reply ?? { type: 'object' }) },
      default: {
        description: 'A problem (RFC 9457)',
        content: { 'application/problem+json': { schema: withReferences({ $ref: 'Problem#' }) } },
      },
    },
  }
}

function json(schema: Schema): Schema {
  return { 'application/json': { schema: withReferences(schema) } }
}

/** Returns a copy in which references have the form of OpenAPI. */
function withReferences(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withReferences)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => {
      const isReference = key === '$ref' && typeof one === 'string'
      return [key, isReference ? `#/components/schemas/${one.slice(0, -1)}` : withReferences(one)]
    }),
  )
}
