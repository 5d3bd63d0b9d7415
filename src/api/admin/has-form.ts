import type { Schema } from './schema.ts'

/**
 * True if a value has the types and the members that a schema requires. A value of a later version may have further
 * members, and other values where the schema lists some. `schemas`: those that `$ref` names.
 */
export function hasForm(
  value: unknown,
  schema: Schema,
  schemas: Readonly<Record<string, Schema>>,
): boolean {
  const fits = (one: unknown, of: unknown): boolean => hasForm(one, of as Schema, schemas)
  const { $ref, anyOf, type, items, required = [], properties = {}, additionalProperties } = schema
  if (typeof $ref === 'string') return fits(value, schemas[$ref.slice(0, -1)])
  if (Array.isArray(anyOf)) return anyOf.some((one) => fits(value, one))
  if (type !== undefined && ![type].flat().some((one) => isOfType(value, one))) return false
  if (Array.isArray(value)) return items === undefined || value.every((one) => fits(one, items))
  if (typeof value !== 'object' || value === null) return true
  const known = properties as Readonly<Record<string, unknown>>
  if (!(required as readonly string[]).every((name) => Object.hasOwn(value, name))) return false
  return Object.entries(value).every(([name, one]) => {
    const of = Object.hasOwn(known, name) ? known[name] : additionalProperties
    return typeof of !== 'object' || fits(one, of)
  })
}

function isOfType(value: unknown, type: unknown): boolean {
  if (type === 'integer') return Number.isInteger(value)
  if (type === 'array') return Array.isArray(value)
  if (type === 'null') return value === null
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value)
  return typeof value === type
}
