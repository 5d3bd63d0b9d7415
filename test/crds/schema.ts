/** A part of the schema of a CustomResourceDefinition, as far as these tests look. */
export interface Schema {
  readonly type: string
  readonly format?: string
  readonly enum?: readonly string[]
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean
}

/** RFC 3339, as Kubernetes writes times. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/

/**
 * Everything in a value that the API would refuse by this schema, or drop without a word, as `path: why`. What
 * JSON has no place for is refused too.
 */
export function misfitsOf(value: unknown, schema: Schema, path = ''): string[] {
  if (!isOfType(value, schema.type)) return [`${path}: ${JSON.stringify(value)}, no ${schema.type}`]
  if (Array.isArray(value)) {
    return value.flatMap((item, i) => misfitsOf(item, schema.items!, `${path}[${i}]`))
  }
  if (typeof value === 'object') return misfitsOfMapping(value as object, schema, path)
  return faultsOf(value, schema).map((fault) => `${path}: ${JSON.stringify(value)} ${fault}`)
}

function misfitsOfMapping(value: object, schema: Schema, path: string): string[] {
  const { properties = {}, additionalProperties, required = [] } = schema
  const missing = required.filter((name) => !Object.hasOwn(value, name))
  const below = Object.entries(value).flatMap(([name, item]) => {
    const field = Object.hasOwn(properties, name) ? properties[name] : additionalProperties
    const at = path === '' ? name : `${path}.${name}`
    if (field !== undefined) return misfitsOf(item, field, at)
    return schema['x-kubernetes-preserve-unknown-fields'] === true ? [] : [`${at}: no such field`]
  })
  return [...missing.map((name) => `${path}: without ${name}`), ...below]
}

function isOfType(value: unknown, type: string): boolean {
  switch (type) {
    case 'integer':
      return Number.isSafeInteger(value)
    case 'array':
      return Array.isArray(value)
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value)
    default:
      return typeof value === type
  }
}

function faultsOf(value: unknown, schema: Schema): string[] {
  const { format, pattern, minLength = 0, maxLength = Number.POSITIVE_INFINITY } = schema
  if (typeof value === 'number') {
    return value < (schema.minimum ?? Number.NEGATIVE_INFINITY) ? ['is too low'] : []
  }
  if (typeof value !== 'string') return []
  const faults = [
    { is: schema.enum?.includes(value) === false, fault: 'is none of the enumeration' },
    { is: format === 'date-time' && !TIME.test(value), fault: 'is no time' },
    {
      is: pattern !== undefined && !new RegExp(pattern).test(value),
      fault: 'is not as it must be',
    },
    { is: value.length < minLength || value.length > maxLength, fault: 'is of no good length' },
  ]
  return faults.filter(({ is }) => is).map(({ fault }) => fault)
}

/** Paths of all fields below a schema: `a.b`, `a[].b`, `a{}` of whatever name. */
export function pathsOf(schema: Schema, path = ''): string[] {
  const { properties, additionalProperties, items } = schema
  if (items !== undefined) return pathsOf(items, `${path}[]`)
  if (additionalProperties !== undefined) return pathsOf(additionalProperties, `${path}{}`)
  if (properties === undefined) return [path]
  return Object.entries(properties).flatMap(([name, field]) =>
    pathsOf(field, path === '' ? name : `${path}.${name}`),
  )
}

/** Paths of all that is in a value, in the form of `pathsOf`. */
export function writtenPaths(value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => writtenPaths(item, `${path}[]`))
  if (typeof value !== 'object' || value === null) return [path]
  return Object.entries(value).flatMap(([name, item]) =>
    writtenPaths(item, path === '' ? name : `${path}.${name}`),
  )
}

/** `value`, with the path of every field that is read of it put into `read`, in the form of `pathsOf`. */
export function watched<T extends object>(value: T, read: Set<string>, path = ''): T {
  const isList = Array.isArray(value)
  return new Proxy(value, {
    get(target, name, receiver) {
      const found: unknown = Reflect.get(target, name, receiver)
      if (typeof name !== 'string' || (isList && !/^\d+$/.test(name))) return found
      const below = isList ? `${path}[]` : path === '' ? name : `${path}.${name}`
      if (!isList) read.add(below)
      return typeof found === 'object' && found !== null ? watched(found, read, below) : found
    },
  })
}
