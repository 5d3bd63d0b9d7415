import type { YamlValue } from '../../yaml/scan-block-yaml.ts'

type Mapping = { readonly [key: string]: YamlValue }

/** Why a resource is refused, and the field that causes it. */
export interface FieldProblem {
  readonly path: readonly (string | number)[]
  readonly message: string
}

/** A field of a resource. Cheap to create, because nearly none is printed. */
export class FieldPlace {
  readonly #parent: FieldPlace | undefined
  readonly #step: string | number

  constructor(step: string | number, parent: FieldPlace | undefined = undefined) {
    this.#parent = parent
    this.#step = step
  }

  at(step: string | number): FieldPlace {
    return new FieldPlace(step, this)
  }

  path(): (string | number)[] {
    return this.#parent === undefined ? [] : [...this.#parent.path(), this.#step]
  }
}

/** Place of the resource itself and of the parts that every resource has. */
export const RESOURCE: FieldPlace = new FieldPlace('')
export const METADATA: FieldPlace = RESOURCE.at('metadata')
export const LABELS: FieldPlace = METADATA.at('labels')
export const SPEC: FieldPlace = RESOURCE.at('spec')

/** Ends the validation of one resource at its first fault; caught in `validateResource`. */
export class RefusedError extends Error {
  readonly problem: FieldProblem

  constructor(place: FieldPlace, message: string) {
    super(message)
    this.name = 'RefusedError'
    this.problem = { path: place.path(), message }
  }
}

const NO_FIELDS: Mapping = {}
const NO_ITEMS: readonly YamlValue[] = []

/**
 * A field of a mapping; undefined = missing or null. `name`: not a property name that all objects
 * have.
 */
export function field(parent: Mapping, name: string): YamlValue | undefined {
  return parent[name] ?? undefined
}

/** A mapping; empty = the field is missing. `place`: place of `parent`. */
export function mappingField(parent: Mapping, name: string, place: FieldPlace): Mapping {
  const value = field(parent, name)
  if (value === undefined) return NO_FIELDS
  if (!isMapping(value)) throw new RefusedError(place.at(name), `${name} must be a mapping`)
  return value
}

/** A sequence; empty = the field is missing. */
export function sequenceField(
  parent: Mapping,
  name: string,
  place: FieldPlace,
): readonly YamlValue[] {
  const value = field(parent, name)
  if (value === undefined) return NO_ITEMS
  if (!Array.isArray(value)) throw new RefusedError(place.at(name), `${name} must be a list`)
  return value
}

/** A string; '' = the field is missing. */
export function stringField(parent: Mapping, name: string, place: FieldPlace): string {
  const value = field(parent, name)
  if (value === undefined) return ''
  if (typeof value !== 'string') throw new RefusedError(place.at(name), `${name} must be a string`)
  return value
}

/**
 * The text of a string, number or boolean; '' = the field is missing. Other values are refused:
 * lists may nest deeply, and a mapping may have its own `toString`.
 */
export function scalarField(parent: Mapping, name: string, place: FieldPlace): string {
  const value = field(parent, name)
  if (value === undefined) return ''
  if (typeof value === 'object')
    throw new RefusedError(place.at(name), `${name} must be a string, a number or a boolean`)
  return String(value)
}

export function isMapping(value: YamlValue | undefined): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Prepares a user's text for a message: quoted, truncated, on one line. */
export function quote(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text)
}

/** Prints a path, such as `spec.endpoints[0].targets[1]`. */
export function printPath(path: readonly (string | number)[]): string {
  return path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`))
    .join('')
    .slice(1)
}
