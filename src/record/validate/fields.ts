import type { FieldProblem } from '../dns-record.ts'
import type { YamlValue } from '../yaml/scan-block-yaml.ts'

type Path = readonly (string | number)[]
type Mapping = { readonly [key: string]: YamlValue }

/** Stops the validation of one resource at its first fault; caught in `validateResource`. */
export class RefusedError extends Error {
  readonly problem: FieldProblem

  constructor(path: Path, message: string) {
    super(message)
    this.name = 'RefusedError'
    this.problem = { path, message }
  }
}

const NO_FIELDS: Mapping = {}
const NO_ITEMS: readonly YamlValue[] = []

/** Own property of a mapping; undefined where there is none or it is null. */
export function field(parent: Mapping, name: string): YamlValue | undefined {
  return Object.hasOwn(parent, name) ? (parent[name] ?? undefined) : undefined
}

/** A mapping, empty where the field is absent. `path`: of the field itself. */
export function mappingField(parent: Mapping, name: string, path: Path): Mapping {
  const value = field(parent, name)
  if (value === undefined) return NO_FIELDS
  if (!isMapping(value)) throw new RefusedError(path, `${name} must be a mapping`)
  return value
}

/** A sequence, empty where the field is absent. */
export function sequenceField(parent: Mapping, name: string, path: Path): readonly YamlValue[] {
  const value = field(parent, name)
  if (value === undefined) return NO_ITEMS
  if (!Array.isArray(value)) throw new RefusedError(path, `${name} must be a list`)
  return value
}

/** A string, '' where the field is absent. */
export function stringField(parent: Mapping, name: string, path: Path): string {
  const value = field(parent, name)
  if (value === undefined) return ''
  if (typeof value !== 'string') throw new RefusedError(path, `${name} must be a string`)
  return value
}

export function isMapping(value: YamlValue | undefined): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Operator's text for a message: quoted, cut, on one line. */
export function quote(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text)
}
