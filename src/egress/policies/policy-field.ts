import { didYouMean } from '../../base/nearest.ts'
import { isObject, type JsonValue } from '../../kube/api.ts'

/** A fault of an object of a policy language, and the field that has it. */
export interface PolicyProblem {
  /** `CiliumNetworkPolicy a/web`. */
  readonly object: string
  readonly path: FieldPath
  readonly message: string
  /** The API does not have the field. */
  readonly isUnknown?: true
}

export type FieldPath = readonly (string | number)[]

/** Prints a path, such as `spec.egress[0].toPorts`. */
export function printFieldPath(path: FieldPath): string {
  return path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`))
    .join('')
    .replace(/^\./, '')
}

/** Longest quotation of a value in a message. */
const QUOTED_MAX = 100

export function quoteValue(value: JsonValue | undefined): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > QUOTED_MAX ? `${text.slice(0, QUOTED_MAX)}…` : text
}

/** One field of an object, with its place. Null counts as missing. */
export class PolicyField {
  readonly value: JsonValue | undefined
  readonly #parent: PolicyField | undefined
  readonly #step: string | number
  readonly #report: (problem: Omit<PolicyProblem, 'object'>) => void

  private constructor(
    value: JsonValue | undefined,
    step: string | number,
    parent: PolicyField | undefined,
    report: (problem: Omit<PolicyProblem, 'object'>) => void,
  ) {
    this.value = value ?? undefined
    this.#step = step
    this.#parent = parent
    this.#report = report
  }

  /** The object as a whole. `problems` receives what is reported. */
  static root(object: string, value: JsonValue, problems: PolicyProblem[]): PolicyField {
    return new PolicyField(value, '', undefined, (problem) => {
      problems.push({ object, ...problem })
    })
  }

  get isPresent(): boolean {
    return this.value !== undefined
  }

  get path(): FieldPath {
    return this.#parent === undefined ? [] : [...this.#parent.path, this.#step]
  }

  /** A field of a mapping. Missing if this is no mapping. */
  at(name: string): PolicyField {
    const { value } = this
    const has = isObject(value) && Object.hasOwn(value, name)
    return this.#child(has ? value[name] : undefined, name)
  }

  /** Names of the fields that are present. */
  names(): readonly string[] {
    const { value } = this
    return isObject(value) ? Object.keys(value).filter((name) => value[name] !== null) : []
  }

  /** The items of a list; none if it is missing. Anything else is reported. */
  items(): readonly PolicyField[] {
    const { value } = this
    if (Array.isArray(value)) return value.map((item, i) => this.#child(item, i))
    if (this.isPresent) this.report('must be a list')
    return []
  }

  /** A text; '' if it is missing. Anything else is reported. */
  text(): string {
    const { value } = this
    if (typeof value === 'string') return value
    if (this.isPresent) this.report('must be a string')
    return ''
  }

  /** An integer; undefined if it is missing or out of bounds, which is reported. */
  integer(min: number, max: number): number | undefined {
    const { value } = this
    const isValid = Number.isInteger(value) && Number(value) >= min && Number(value) <= max
    if (isValid) return Number(value)
    this.report(`must be an integer from ${min} to ${max}, not ${quoteValue(value)}`)
    return undefined
  }

  /**
   * False if this is no mapping, or has a field that is not in `known`, which is reported. `unsupported`: the other
   * fields of the API.
   */
  hasOnly(known: readonly string[], unsupported: readonly string[] = []): boolean {
    if (!isObject(this.value)) {
      this.report('must be a mapping')
      return false
    }
    const others = this.names().filter((name) => !known.includes(name))
    for (const name of others) {
      const field = this.at(name)
      if (unsupported.includes(name)) field.report('unsupported field')
      else {
        const message = `unknown field${didYouMean(name, known)}`
        field.#report({ path: field.path, message, isUnknown: true })
      }
    }
    return others.length === 0
  }

  /** The same field; its faults are not reported. */
  silent(): PolicyField {
    return new PolicyField(this.value, this.#step, this.#parent, () => {})
  }

  report(message: string): void {
    this.#report({ path: this.path, message })
  }

  #child(value: JsonValue | undefined, step: string | number): PolicyField {
    return new PolicyField(value, step, this, this.#report)
  }
}
