import { scanDuration } from '../../base/duration.ts'
import { type ApiObject, isObject } from '../../kube/api.ts'
import { TTL_MAX_SECONDS } from '../../records/dns-record.ts'
import {
  type FieldPlace,
  type FieldProblem,
  METADATA,
  quote,
  RefusedError,
} from '../../records/validate/fields.ts'
import type { OnProblem } from './object-kind.ts'
import type { EndpointProperty } from './provider-properties.ts'
import type { ObjectTargets } from './targets.ts'

/** A property of endpoints that an annotation of the object gives. */
export interface AnnotatedProperty extends EndpointProperty {
  /** The whole name of the annotation. */
  readonly annotation: string
}

/** Of external-dns since version 0.22, and of earlier ones. The first one counts. */
const PREFIXES: readonly string[] = [
  'external-dns.kubernetes.io/',
  'external-dns.alpha.kubernetes.io/',
]
/** The value of `controller` that means external-dns. */
const CONTROLLER = 'dns-controller'
/** Annotations that become properties of endpoints: `aws-weight` is the property `aws/weight`. */
const PROVIDER_NAME = /^(aws|azure|cloudflare|coredns|scw|webhook)-(.+)$/
/** Annotations that are properties under the same name. */
const COMMON: readonly string[] = ['alias', 'record-type']
/** Values of the annotations that decide where hosts of routes and Ingresses come from. */
export const ANNOTATION_ONLY = 'annotation-only'
export const DEFINED_HOSTS_ONLY = 'defined-hosts-only'
/** Bound on the names and targets in one annotation. */
const LIST_MAX = 256

/** The annotations of an object; none if `metadata` or they are no mapping. */
export function annotationsOf({ metadata }: ApiObject): ApiObject {
  const { annotations } = isObject(metadata) ? metadata : {}
  return isObject(annotations) ? annotations : {}
}

/** The annotations of external-dns on one object. */
export class ExternalDnsAnnotations {
  /** By the name behind the prefix. */
  readonly #texts = new Map<string, { readonly text: string; readonly name: string }>()
  /** Annotations that are not used. */
  readonly problems: readonly FieldProblem[]

  constructor(object: ApiObject) {
    const problems: FieldProblem[] = []
    const annotations = Object.entries(annotationsOf(object))
    for (const prefix of PREFIXES) {
      for (const [name, value] of annotations) {
        if (!name.startsWith(prefix) || typeof value !== 'string') continue
        const key = name.slice(prefix.length)
        const first = this.#texts.get(key)
        if (first === undefined) this.#texts.set(key, { text: value, name })
        else if (first.text !== value) {
          const message = `${name} is ignored, because ${first.name} has another value`
          problems.push({ path: placeOf(name).path(), message })
        }
      }
    }
    this.problems = problems
  }

  /** Returns the value of an annotation, by the name behind the prefix; undefined = it is missing. */
  text(key: string): string | undefined {
    return this.#texts.get(key)?.text
  }

  /** Returns the whole name of an annotation; `key` itself if it is missing. */
  nameOf(key: string): string {
    return this.#texts.get(key)?.name ?? key
  }

  /** True if another controller is responsible for the object. */
  get isOfOther(): boolean {
    return (this.text('controller') ?? CONTROLLER) !== CONTROLLER
  }

  placeOf(key: string): FieldPlace {
    return placeOf(this.nameOf(key))
  }

  /** Returns the items of a list, without final dots. Throws RefusedError. */
  list(key: string): readonly string[] {
    const text = this.text(key) ?? ''
    const items = text.replaceAll(' ', '').split(',', LIST_MAX + 1)
    if (items.length > LIST_MAX) {
      throw this.#refusal(key, `may have up to ${LIST_MAX} items`)
    }
    return items.filter((item) => item !== '').map((item) => item.replace(/\.$/, ''))
  }

  /** Returns the items of a list; none if it is invalid. */
  validList(key: string, onProblem?: OnProblem): readonly string[] {
    try {
      return this.list(key)
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error
      onProblem?.(error.problem)
      return []
    }
  }

  /** Returns one of two words; '' = the annotation is missing or empty. Throws RefusedError. */
  choice(key: string, [a, b]: readonly [string, string], text = this.text(key) ?? ''): string {
    if (text === '' || text === a || text === b) return text
    throw this.#refusal(key, `must be ${a} or ${b}, got ${quote(text)}`)
  }

  /** Returns the targets in place of those of the object; undefined = the annotation is missing or empty. */
  targets(): ObjectTargets | undefined {
    const texts = this.list('target')
    return texts.length === 0 ? undefined : { texts, place: this.placeOf('target') }
  }

  /** Seconds; undefined = the annotation is missing. Throws RefusedError. */
  ttlSeconds(): number | undefined {
    const text = this.text('ttl')
    if (text === undefined) return undefined
    const seconds = /^\d{1,10}$/.test(text)
      ? Number(text)
      : Math.floor((scanDuration(text) ?? -1) / 1000)
    if (seconds >= 1 && seconds <= TTL_MAX_SECONDS) return seconds
    const wanted = `seconds from 1 to ${TTL_MAX_SECONDS}, or a duration such as 5m`
    throw this.#refusal('ttl', `must be ${wanted}, got ${quote(text)}`)
  }

  /** Returns properties as external-dns makes them from annotations. */
  properties(): readonly AnnotatedProperty[] {
    const found: AnnotatedProperty[] = []
    for (const [key, { text, name: annotation }] of this.#texts) {
      const [, provider, rest] = PROVIDER_NAME.exec(key) ?? []
      const name = provider === undefined ? key : `${provider}/${rest}`
      if (provider === undefined && !COMMON.includes(key)) continue
      found.push({ name, value: text, annotation })
    }
    return found
  }

  #refusal(key: string, message: string): RefusedError {
    return new RefusedError(this.placeOf(key), `${this.nameOf(key)} ${message}`)
  }
}

export function placeOf(annotation: string): FieldPlace {
  return METADATA.at('annotations').at(annotation)
}
