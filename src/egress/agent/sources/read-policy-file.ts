import { isUtf8 } from 'node:buffer'
import { readFileSync, statSync } from 'node:fs'
import { InputError, InputErrors } from '../../../base/errors.ts'
import { didYouMean } from '../../../base/nearest.ts'
import { isSystemError } from '../../../base/system-error.ts'
import { type ApiObject, isObject, type JsonValue, textOf } from '../../../kube/api.ts'
import { keyOf } from '../../../kube/object-key.ts'
import { itemsOf } from '../../../records/validate/resource.ts'
import {
  findLine,
  parseDocuments,
  parseOneDocument,
  YamlProblem,
} from '../../../yaml/parse-document.ts'
import { findDeepBracket } from '../../../yaml/scan-json.ts'
import { type DocumentRange, DocumentSplitter } from '../../../yaml/split-documents.ts'
import type { FieldPath } from '../../policies/policy-field.ts'
import {
  apiVersionsOf,
  findPolicyKind,
  identityOf,
  POLICY_KINDS,
  type PolicyKind,
} from '../../policies/policy-kinds.ts'
import type { ListedProblem } from './policy-source.ts'

/** Larger files are refused. */
const FILE_OCTETS_MAX = 16 * 1024 * 1024
/** Deeper documents are refused: what reads them is recursive. */
const DEPTH_MAX = 512
const DEFAULT_NAMESPACE = 'default'
/** RFC 1123 names, as in Kubernetes. */
const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/

/** An object of a file. */
export interface FiledObject {
  readonly kind: PolicyKind
  /** `namespace/name`. */
  readonly key: string
  /** `CiliumNetworkPolicy a/web`. */
  readonly origin: string
  readonly object: ApiObject
  /** Returns `FILE:LINE` of a field. Slow. */
  readonly placeOf: (path: FieldPath) => string
}

export interface PolicyFile {
  readonly objects: readonly FiledObject[]
  /** Objects of other kinds. */
  readonly problems: readonly ListedProblem[]
}

/** One document, or the list that it is: where its parts are. */
interface Place {
  /** Line of the file at which the text starts, from 1. */
  readonly line: number
  readonly text: string
  /** Index of the document in the text. */
  readonly index: number
}

/** Reads a file. Throws InputError with the places of all faults. */
export function readPolicyFile(path: string): PolicyFile {
  const file = new PolicyFileReading(path)
  file.read()
  return file.finish()
}

class PolicyFileReading {
  readonly #path: string
  readonly #objects: FiledObject[] = []
  readonly #problems: ListedProblem[] = []
  readonly #errors: InputError[] = []

  constructor(path: string) {
    this.#path = path
  }

  read(): void {
    const octets = this.#octets()
    if (octets === undefined) return
    if (this.#path.endsWith('.json')) this.#readText(octets.toString(), 1)
    else this.#readYaml(octets)
  }

  #readYaml(octets: Buffer): void {
    const splitter = new DocumentSplitter(octets, octets.length)
    let open: DocumentRange | undefined
    let end = 0
    const close = (): void => {
      if (open !== undefined) this.#readText(octets.toString('utf8', open.start, end), open.line)
      open = undefined
    }
    for (let range = splitter.next(); range !== undefined; range = splitter.next()) {
      // A list comes in parts.
      if (range.part === 'whole' || range.part === 'head') close()
      open ??= range
      end = range.end
    }
    close()
    if (splitter.ended.kind === 'directive') this.#readStream(octets.toString())
    if (splitter.ended.kind === 'large') this.#fail(splitter.ended.line, 'a document is too large')
  }

  finish(): PolicyFile {
    const [first, ...others] = this.#errors
    if (first !== undefined) throw others.length === 0 ? first : new InputErrors(first, others)
    return { objects: this.#objects, problems: this.#problems }
  }

  #octets(): Buffer | undefined {
    try {
      const { size } = statSync(this.#path)
      if (size > FILE_OCTETS_MAX) {
        this.#fail(1, `file of ${size} octets: at most ${FILE_OCTETS_MAX} are read`)
        return undefined
      }
      const octets = readFileSync(this.#path)
      if (isUtf8(octets)) return octets
      this.#fail(1, 'the text is not UTF-8')
    } catch (error) {
      if (!isSystemError(error)) throw error
      this.#fail(1, `cannot be read: ${error.message}`)
    }
    return undefined
  }

  /** A text of one document. */
  #readText(text: string, line: number): void {
    const isDeep = findDeepBracket(text, DEPTH_MAX) !== -1
    const value = isDeep ? new YamlProblem('nested too deep', 1) : parseOneDocument(text)
    if (value instanceof YamlProblem) this.#fail(line + value.line - 1, value.message)
    else this.#readDocument(value as JsonValue, { line, text, index: 0 })
  }

  /** A text of several documents that only the complete parser can split. */
  #readStream(text: string): void {
    this.#objects.length = 0
    this.#problems.length = 0
    this.#errors.length = 0
    const values = parseDocuments(text)
    if (values instanceof YamlProblem) {
      this.#fail(values.line, values.message)
      return
    }
    for (const [index, value] of values.entries()) {
      this.#readDocument(value as JsonValue, { line: 1, text, index })
    }
  }

  #readDocument(value: JsonValue, place: Place): void {
    if (value === null) return
    const items = itemsOf(value as Parameters<typeof itemsOf>[0]) as readonly JsonValue[]
    const isItem = items.length !== 1 || items[0] !== value
    for (const [i, item] of items.entries()) {
      this.#readObject(item, place, isItem ? ['items', i] : [])
    }
  }

  #readObject(object: JsonValue, place: Place, prefix: FieldPath): void {
    const lineOf = (path: FieldPath): number =>
      place.line + findLine(place.text, place.index, [...prefix, ...path], true) - 1
    const placeOf = (path: FieldPath): string => `${this.#path}:${lineOf(path)}`
    const word = textOf(object, 'kind')
    const name = isObject(object) ? textOf(object.metadata, 'name') : ''
    if (!isObject(object) || word === '') {
      this.#fail(lineOf([]), 'an object must be a mapping with a kind')
      return
    }
    const kind = findPolicyKind(object)
    if (kind === undefined) {
      const message = `ignored: ${textOf(object, 'apiVersion')} ${word} is not read; ${cureOf(word)}`
      const problem = { object: `${word} ${name}`, field: 'kind', message }
      this.#problems.push({ ...problem, place: placeOf(['kind']) })
      return
    }
    const fault = faultOf(object)
    if (fault !== '') this.#fail(lineOf(['metadata']), fault)
    else this.#objects.push({ ...filed(kind, object), placeOf })
  }

  #fail(line: number, message: string): void {
    this.#errors.push(new InputError({ file: this.#path, line }, message))
  }
}

/** What is wrong with the metadata, which an API server would refuse; '' = nothing. */
function faultOf({ metadata }: ApiObject): string {
  const { name, namespace = null, labels = null } = isObject(metadata) ? metadata : {}
  if (typeof name !== 'string' || !NAME.test(name)) return 'metadata.name is missing or invalid'
  if (namespace !== null && (typeof namespace !== 'string' || !NAME.test(namespace))) {
    return 'metadata.namespace is invalid'
  }
  const isMap = labels === null || isObject(labels)
  const values = isObject(labels) ? Object.values(labels) : []
  const areTexts = isMap && values.every((value) => value === null || typeof value === 'string')
  return areTexts ? '' : "metadata.labels must be strings: write '1' in place of 1"
}

/** Adds the namespace that `kubectl` would add. */
function filed(kind: PolicyKind, object: ApiObject): Omit<FiledObject, 'placeOf'> {
  const metadata = isObject(object.metadata) ? object.metadata : {}
  const { namespace, ...others } = metadata
  const placed = kind.isNamespaced
    ? { ...others, namespace: namespace ?? DEFAULT_NAMESPACE }
    : others
  const whole = { ...object, metadata: placed }
  return { kind, key: keyOf(whole), origin: identityOf(kind, whole).origin, object: whole }
}

/** What to write in place of a kind that is not read. */
function cureOf(word: string): string {
  const known = POLICY_KINDS.filter(({ kind }) => kind === word)
  if (known.length > 0) return `write apiVersion ${known.flatMap(apiVersionsOf).join(' or ')}`
  const kinds = new Set(POLICY_KINDS.map(({ kind }) => kind))
  const all = ['Pod', 'Namespace', ...kinds]
  return `these are: ${all.join(', ')}${didYouMean(word, all)}`
}
