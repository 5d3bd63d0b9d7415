import { isUtf8 } from 'node:buffer'
import type { InputError } from '../../base/errors.ts'
import { joinLatin1 } from '../../base/latin1.ts'
import type { HealthProbe, Resource } from '../../records/dns-record.ts'
import { packRecord } from '../../records/pack.ts'
import type { FieldProblem } from '../../records/validate/fields.ts'
import { isMapping } from '../../records/validate/fields.ts'
import { findFurtherFaults } from '../../records/validate/further-faults.ts'
import { findIgnored, type IgnoredPart, ignoredPart } from '../../records/validate/ignored.ts'
import {
  isList,
  isOtherKind,
  itemsOf,
  SERVED,
  validateResource,
} from '../../records/validate/resource.ts'
import {
  findLine,
  parseDocuments,
  parseOneDocument,
  scanPlainDocument,
  YamlProblem,
} from '../../yaml/parse-document.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import type { DocumentRange } from '../../yaml/split-documents.ts'
import { topLevelKind } from '../../yaml/top-level-kind.ts'
import type { IgnoredObject } from '../ignored-index.ts'
import { type HeldDocument, HeldRecord, type ManifestFile, manifestError } from './manifest-file.ts'
import { probePlaceKey } from './manifest-store.ts'
import { countLines, parseJson } from './parse-json.ts'

/** Maximum number of faults per file that are kept with their places; the others are counted. */
const FAULTS_MAX = 1000
/** Documents of the file's last state that are indexed per step. */
const RUN = 1024
/** Longest name of an object of another kind in a message. */
const NAME_CHARACTERS_MAX = 253
const NEWLINE = 0x0a
const NO_RECORDS: readonly HeldRecord[] = []
const NO_PROBES: readonly HealthProbe[] = []
const NOTHING_IGNORED: readonly IgnoredObject[] = []

/** The ignored parts of one object. */
export interface IgnoredParts {
  /** Identifies the object in the directory. */
  readonly key: string
  /** Empty = nothing is ignored. */
  readonly problems: readonly IgnoredPart[]
  /** Returns one of the problems with its place. Slow. */
  readonly locate: (problem: FieldProblem) => InputError
}

export interface ReadingOptions {
  /** State of the same path when it was last read. */
  readonly previous: ManifestFile | undefined
  /** Another file. Its documents are copied where this one has the same. */
  readonly similar?: ManifestFile | undefined
  /** Returns the record of that key in `previous`. */
  readonly findPrevious: (key: string) => HeldRecord | undefined
  readonly onIgnored: ((parts: IgnoredParts) => void) | undefined
  /** Returns true if the line of one more ignored part may be searched, which is slow. */
  readonly takesLine?: () => boolean
  /** Called with the kind of each object of another kind that is read. */
  readonly onOther?: ((kind: string) => void) | undefined
  /** True: all faults of a refused record are reported, not only the first. */
  readonly isThorough: boolean
  /** Undefined = the end of the path decides. */
  readonly isJson?: boolean | undefined
}

/** True if the file is read as JSON, not as YAML. */
export function isReadAsJson(path: string, { isJson }: ReadingOptions): boolean {
  return isJson ?? path.endsWith('.json')
}

/** The part of a list in front of its items. */
interface OpenList {
  readonly line: number
  readonly head: string
  readonly documents: number
  readonly errors: number
  readonly faultCount: number
  readonly refusedCount: number
}

type Path = readonly (string | number)[]
/** `isKey`: the line of the key, not of its value. */
type LineOf = (path: Path, isKey?: boolean) => number

/** One pass over one file; receives its documents one by one. */
export class FileReading {
  readonly #path: string
  readonly #options: ReadingOptions
  readonly #isJson: boolean
  readonly #documents: HeldDocument[] = []
  /** First lines of `#documents`. */
  readonly #lines: number[] = []
  readonly #errors: InputError[] = []
  #faultCount = 0
  #refusedCount = 0
  #excess: InputError | undefined
  /** Documents that need no parsing. Those of the last state, or of a similar file. */
  readonly #known: readonly HeldDocument[]
  #isPrefix = true
  /** The other documents that are indexed so far, by digest; the last of equal documents. */
  readonly #knownByDigest = new Map<number, HeldDocument>()
  #indexed = 0
  /** Previous versions of refused records, by key. */
  readonly #previous = new Map<string, HeldRecord | undefined>()
  /** The list whose items are being read. */
  #list: OpenList | undefined

  constructor(path: string, options: ReadingOptions) {
    this.#path = path
    this.#options = options
    this.#isJson = isReadAsJson(path, options)
    this.#known = (options.previous ?? options.similar)?.documents ?? []
  }

  /** True once the file's last state is certain to be kept and no more faults are reported. */
  get isHopeless(): boolean {
    const isFull = this.#errors.length >= FAULTS_MAX && this.#list === undefined
    return isFull && this.#options.previous !== undefined
  }

  /** Returns false if documents of the last state are not indexed yet; the caller calls it again. */
  prepare(range: DocumentRange): boolean {
    if (range.part === 'head' || range.part === 'tail') return true
    const index = this.#documents.length
    if (this.#isPrefix && isSame(this.#known[index], range)) return true
    this.#endPrefix(index)
    const end = Math.min(this.#known.length, this.#indexed + RUN)
    for (; this.#indexed < end; this.#indexed++) {
      const known = this.#known[this.#indexed]!
      this.#knownByDigest.set(known.digestA, known)
    }
    return this.#indexed === this.#known.length
  }

  #endPrefix(index: number): void {
    if (this.#isPrefix) this.#indexed = index
    this.#isPrefix = false
  }

  /** Reads a document. The caller calls `prepare` first until it returns true. */
  document(octets: Buffer, range: DocumentRange): void {
    const { start, end, line, part } = range
    if (part === 'head') this.beginList(octets.toString('utf8', start, end), line)
    else if (part === 'tail') this.endList(octets.toString('utf8', start, end), line)
    if (part === 'head' || part === 'tail') return
    if (part === 'whole') this.endList('', line)
    const known = this.#findKnown(range)
    if (known !== undefined) {
      this.#push(this.#options.previous === undefined ? this.#copy(known) : known, line)
      return
    }
    const value = this.#parse(octets, range)
    if (value === undefined) return
    if (value instanceof YamlProblem) {
      this.#refuseFile(range.line + value.line - 1, value.message)
      return
    }
    const isInList = range.part === 'item'
    const items = isInList && !this.#isJson && Array.isArray(value) ? value : itemsOf(value)
    const lineOf: LineOf = (path, isKey) =>
      range.line + findLine(octets.toString('utf8', start, end), 0, path, isKey) - 1
    this.#hold(value, items, range, lineOf)
  }

  /** A YAML stream that can't be split without understanding it. */
  stream(octets: Buffer): void {
    const text = this.#decode(octets, 1)
    if (text === undefined) return
    const values = parseDocuments(text)
    if (values instanceof YamlProblem) {
      this.#refuseFile(values.line, values.message)
      return
    }
    for (const [index, value] of values.entries()) {
      const range = { line: 1, digestA: 0, digestB: 0 }
      this.#hold(value, itemsOf(value), range, (path, isKey) => findLine(text, index, path, isKey))
    }
  }

  /** Notes a fault of the file as such, which ends a list. */
  fail(line: number, message: string): void {
    this.#list = undefined
    this.#refuseFile(line, message)
  }

  finish(): ManifestFile {
    const { previous } = this.#options
    this.endList('', 1)
    if (this.#errors.length >= FAULTS_MAX) {
      const { line } = this.#errors.at(-1)!.position!
      const message = `only the first ${FAULTS_MAX} faults of this file are reported`
      this.#errors.push(manifestError(this.#path, line, message))
    }
    const path = this.#path
    if (this.#errors.length > 0 && previous !== undefined) {
      return { path, documents: previous.documents, errors: this.#errors }
    }
    for (const [index, document] of this.#documents.entries()) {
      document.line = this.#lines[index]!
      for (const record of document.records) record.document = index
    }
    return { path, documents: this.#documents, errors: this.#errors }
  }

  /** Undefined if the octets are not text, which has been reported. */
  #parse(octets: Buffer, range: DocumentRange): YamlValue | YamlProblem | undefined {
    const { start, end, isAscii, line } = range
    const text = isAscii
      ? octets.toString('latin1', start, end)
      : this.#decode(octets.subarray(start, end), line)
    if (text === undefined) return undefined
    if (this.#isJson) return parseJson(text)
    const plain = scanPlainDocument(text)
    if (plain !== undefined) return plain
    const kind = topLevelKind(text)
    if (kind === '' || !isOtherKind(kind)) return parseOneDocument(text)
    this.#options.onOther?.(kind)
    return null
  }

  /** `head`: the text before the items. */
  beginList(head: string, line: number): void {
    this.endList('', line)
    this.#list = {
      line,
      head,
      documents: this.#documents.length,
      errors: this.#errors.length,
      faultCount: this.#faultCount,
      refusedCount: this.#refusedCount,
    }
  }

  /** `tail`: the text after the items, which starts at `tailLine`. */
  endList(tail: string, tailLine: number): void {
    const list = this.#list
    if (list === undefined) return
    const { head, line } = list
    const text = head + tail
    const value = this.#isJson ? parseJson(text) : parseOneDocument(text)
    if (!(value instanceof YamlProblem)) {
      this.#settleList(list, value)
      return
    }
    const before = countLines(head)
    const isInHead = value.line <= before || tail === ''
    this.#list = undefined
    this.#refuseFile(
      isInHead ? line + value.line - 1 : tailLine + value.line - before - 1,
      value.message,
    )
  }

  /** The kind of the surrounding object decides whether the items are resources, or the object is one. */
  #settleList(list: OpenList, value: YamlValue): void {
    this.#list = undefined
    if (isMapping(value) && isList(value)) return
    this.#endPrefix(list.documents)
    this.#documents.length = list.documents
    this.#lines.length = list.documents
    this.#errors.length = list.errors
    this.#faultCount = list.faultCount
    this.#refusedCount = list.refusedCount
    const { line } = list
    this.#hold(value, [value], { line, digestA: 0, digestB: 0 }, () => line)
  }

  /** Refuses octets that are not UTF-8, since replaced characters would change the content. */
  #decode(octets: Buffer, firstLine: number): string | undefined {
    if (isUtf8(octets)) return octets.toString('utf8')
    const line = firstLine + countLinesBeforeFault(octets)
    this.#refuseFile(line, 'octets that are not UTF-8; save the file as UTF-8')
    return undefined
  }

  /**
   * A document with problems is read again, because their lines may have changed. So is one without
   * a digest.
   */
  #findKnown(range: DocumentRange): HeldDocument | undefined {
    if (!hasDigest(range)) return undefined
    const known = this.#isPrefix ? this.#known[this.#documents.length] : this.#takeKnown(range)
    return known?.records.some((r) => r.problem !== undefined) ? undefined : known
  }

  #takeKnown(range: DocumentRange): HeldDocument | undefined {
    const known = this.#knownByDigest.get(range.digestA)
    if (known?.digestB !== range.digestB) return undefined
    // Only once: the second of two equal documents is a duplicate of its own.
    this.#knownByDigest.delete(range.digestA)
    return known
  }

  /** A document belongs to one file. */
  #copy(document: HeldDocument): HeldDocument {
    const records = document.records.map(({ key, packed }) => {
      return new HeldRecord(key, packed, this.#path)
    })
    return { ...document, records }
  }

  #push(document: HeldDocument, line: number): void {
    this.#documents.push(document)
    this.#lines.push(line)
  }

  #hold(
    value: YamlValue,
    items: readonly YamlValue[],
    at: Pick<DocumentRange, 'line' | 'digestA' | 'digestB'>,
    lineOf: LineOf,
  ): void {
    const records: HeldRecord[] = []
    const probes: HealthProbe[] = []
    const ignored: IgnoredObject[] = []
    let isNamed = true
    for (const [index, item] of items.entries()) {
      const resource = validateResource(item, SERVED)
      const prefix = item === value ? [] : Array.isArray(value) ? [index] : ['items', index]
      const lineAt: LineOf = (path, isKey) => lineOf([...prefix, ...path], isKey)
      ignored.push(...this.#noteIgnored(resource, item, lineAt, at.line))
      if (resource.kind === 'probe') probes.push(resource.probe)
      else if (resource.kind === 'record') records.push(this.#holdRecord(resource))
      else if (resource.kind === 'refused') {
        if (resource.key === '') isNamed = false
        const refused = this.#holdRefused(resource, at.line, lineAt)
        if (refused !== undefined) records.push(refused)
        if (this.#options.isThorough) this.#reportFurther(item, resource, lineAt)
      }
    }
    const document = {
      line: at.line,
      // A document with a fault of the file has no record, so the fault is found by reading it again.
      digestA: isNamed ? at.digestA : 0,
      digestB: isNamed ? at.digestB : 0,
      // A copy has no room for more: there are as many documents as records.
      records: records.length === 0 ? NO_RECORDS : records.slice(),
      probes: probes.length === 0 ? NO_PROBES : probes,
      ignored: ignored.length === 0 ? NOTHING_IGNORED : ignored,
    }
    this.#push(document, at.line)
  }

  /** Only for `check`, because a file that is only checked is never served. */
  #reportFurther(item: YamlValue, resource: Resource & { kind: 'refused' }, lineOf: LineOf): void {
    const { key, problem } = resource
    for (const { path, message } of findFurtherFaults(item, problem)) {
      if (++this.#faultCount > FAULTS_MAX) return
      this.#errors.push(manifestError(this.#path, lineOf(path), `${key} is refused: ${message}`))
    }
  }

  #noteIgnored(
    resource: Resource,
    item: YamlValue,
    lineOf: LineOf,
    line: number,
  ): readonly IgnoredObject[] {
    const { onIgnored, onOther, takesLine } = this.#options
    let problems: readonly IgnoredPart[] = []
    if (resource.kind === 'record') problems = findIgnored(item, resource.record, 'manifest')
    else if (resource.kind !== 'other') problems = findIgnored(item)
    else if (resource.name === '') return NOTHING_IGNORED
    else if (resource.problem === undefined) {
      onOther?.(resource.name)
      return NOTHING_IGNORED
    } else problems = [ignoredPart(resource.problem, 'ignored-record')]
    const key = keyOf(resource, item) || this.#path
    onIgnored?.({
      key,
      problems,
      locate: ({ path, message }) => {
        return manifestError(this.#path, lineOf(path, true), `${key}: ${message}`)
      },
    })
    const parts = problems.map((problem) => {
      return takesLine?.() === true
        ? { ...problem, lineOffset: lineOf(problem.path, true) - line }
        : problem
    })
    return parts.length === 0 ? NOTHING_IGNORED : [{ key, parts }]
  }

  #holdRecord({ record }: Resource & { kind: 'record' }): HeldRecord {
    const key = joinLatin1(record.namespace, record.name)
    return new HeldRecord(key, packRecord(record), this.#path)
  }

  /** Returns undefined if namespace or name are missing, which is a fault of the file. */
  #holdRefused(
    { key, problem }: Resource & { kind: 'refused' },
    line: number,
    lineOf: LineOf,
  ): HeldRecord | undefined {
    if (key === '') {
      // The line is searched only if needed, because the search takes longer than the rest.
      const isKept = this.#faultCount < FAULTS_MAX
      this.#reportFile(isKept ? lineOf(problem.path) : line, problem.message)
      return undefined
    }
    const packed = this.#findPrevious(key)?.packed
    if (++this.#refusedCount > FAULTS_MAX) {
      const message = `${FAULTS_MAX} records of this file are refused; further ones are not listed`
      this.#excess ??= manifestError(this.#path, line, message)
      return new HeldRecord(key, packed, this.#path, this.#excess)
    }
    const kept = packed === undefined ? '' : ', its last valid version is served'
    const message = `${key} is refused${kept}: ${problem.message}`
    return new HeldRecord(
      key,
      packed,
      this.#path,
      manifestError(this.#path, lineOf(problem.path), message),
    )
  }

  /**
   * Searches each key once, because a file may have a hundred thousand records with the same key.
   */
  #findPrevious(key: string): HeldRecord | undefined {
    if (!this.#previous.has(key)) this.#previous.set(key, this.#options.findPrevious(key))
    return this.#previous.get(key)
  }

  #reportFile(line: number, message: string): void {
    if (++this.#faultCount > FAULTS_MAX) return
    const kept = this.#options.previous === undefined ? '' : '; its last valid content is served'
    this.#errors.push(manifestError(this.#path, line, `${message}${kept}`))
  }

  #refuseFile(line: number, message: string): void {
    this.#reportFile(line, message)
    // Keeps the indexes of `#documents` equal to those of the ranges.
    const nothing = { records: NO_RECORDS, probes: NO_PROBES, ignored: NOTHING_IGNORED }
    this.#push({ line, digestA: 0, digestB: 0, ...nothing }, line)
  }
}

/** `namespace/name`, unless it is a record with the kind in front; '' = the object has no name. */
function keyOf(resource: Resource, item: YamlValue): string {
  if (resource.kind === 'record') {
    return joinLatin1(resource.record.namespace, resource.record.name)
  }
  if (resource.kind === 'probe') return probePlaceKey(resource.probe)
  if (resource.kind === 'refused') return resource.key
  const { metadata } = isMapping(item) ? item : {}
  const name = isMapping(metadata) ? metadata.name : undefined
  return typeof name === 'string' ? `${resource.name} ${name.slice(0, NAME_CHARACTERS_MAX)}` : ''
}

function hasDigest({ digestA, digestB }: DocumentRange): boolean {
  return digestA !== 0 || digestB !== 0
}

function isSame(known: HeldDocument | undefined, range: DocumentRange): boolean {
  if (known === undefined || !hasDigest(range)) return false
  return known.digestA === range.digestA && known.digestB === range.digestB
}

/** Number of lines before the first one that is not UTF-8. No character spans two lines. */
function countLinesBeforeFault(octets: Buffer): number {
  let start = 0
  for (let line = 0; ; line++) {
    const end = octets.indexOf(NEWLINE, start)
    if (end === -1 || !isUtf8(octets.subarray(start, end))) return line
    start = end + 1
  }
}
