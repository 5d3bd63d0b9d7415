/** A JSON schema, in the part of the language that OpenAPI 3.1 and fastify share. */
export interface Schema {
  readonly [keyword: string]: unknown
}

export const TEXT: Schema = { type: 'string' }
export const COUNT: Schema = { type: 'integer', minimum: 0 }
export const FLAG: Schema = { type: 'boolean' }
export const TIME: Schema = { type: 'string', description: 'RFC 3339, or empty if it is unknown' }

export function nullable(type: string, description: string): Schema {
  return { type: [type, 'null'], description }
}

export function list(items: Schema): Schema {
  return { type: 'array', items }
}

/** All properties are required, except those of `optional`. */
export function object(
  properties: Readonly<Record<string, Schema>>,
  optional: Readonly<Record<string, Schema>> = {},
): Schema {
  return {
    type: 'object',
    required: Object.keys(properties),
    properties: { ...properties, ...optional },
    additionalProperties: false,
  }
}
