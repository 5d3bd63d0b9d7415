import { isUtf8 } from 'node:buffer'
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import type { InputError } from '../../base/errors.ts'
import type { HealthProbe, Resource } from '../dns-record.ts'
import { joinLatin1 } from '../latin1.ts'
import { packRecord } from '../pack.ts'
import { findFurtherFaults } from '../validate/further-faults.ts'
import { findIgnored } from '../validate/ignored.ts'
import { itemsOf, validateResource } from '../validate/resource.ts'
import {
  findLine,
  parseAsciiDocument,
  parseDocuments,
  parseOneDocument,
  YamlProblem,
} from '../yaml/parse-document.ts'
import type { YamlValue } from '../yaml/scan-block-yaml.ts'
import { type DocumentRange, splitDocuments } from '../yaml/split-documents.ts'
import { type HeldDocument, HeldRecord, type ManifestFile, manifestError } from './manifest-file.ts'

/** Larger files are refused. */
export const FILE_OCTETS_MAX = 128 * 1024 * 1024
/** The buffer that files are read into is kept up to this size. */
const KEPT_OCTETS_MAX = 4 * 1024 * 1024
const NEWLINE = 0x0a
const NO_RECORDS: readonly HeldRecord[] = []
const NO_PROBES: readonly HealthProbe[] = []

const NO_OCTETS = Buffer.alloc(0)
/** For the next file; empty while one is being read. */
let kept: Buffer = NO_OCTETS

export interface ReadOptions {
  /** Lets others run now and then. */
  readonly pause: () => Promise<void> | undefined
  /** Told of what is passed over in good records. */
  readonly onIgnored: ((warning: InputError) => void) | undefined
}

/**
 * Reads one manifest file. Documents that are octet for octet those of `previous` are taken over
 * without a look. `previous`: what the same path held when it was last read; its documents are what is
 * returned, beside the errors, where the file as such is bad. Throws InputError if the file can't be read at all.
 */
export async function readManifestFile(
  path: string,
  previous: ManifestFile | undefined,
  options: ReadOptions,
): Promise<ManifestFile> {
  // Taken, not borrowed: files of another directory may be read while this one pauses.
  const buffer = kept
  kept = NO_OCTETS
  const octets = readOctets(path, buffer)
  const reading = new FileReading(path, previous, options.onIgnored)
  const ranges = path.endsWith('.json') ? undefined : splitDocuments(octets, octets.length)
  if (path.endsWith('.json')) reading.json(octets)
  else if (ranges === undefined) reading.stream(octets)
  else {
    reading.expect(ranges)
    for (const range of ranges) {
      reading.document(octets, range)
      const paused = options.pause()
      if (paused !== undefined) await paused
    }
  }
  if (octets.buffer.byteLength <= KEPT_OCTETS_MAX) kept = Buffer.from(octets.buffer)
  return reading.finish()
}

/** The octets of a file, in `spare` if they have room there. */
function readOctets(path: string, spare: Buffer): Buffer {
  let descriptor = -1
  try {
    descriptor = openSync(path, 'r')
    const { size } = fstatSync(descriptor)
    if (size > FILE_OCTETS_MAX) {
      throw manifestError(path, 1, `file of ${size} octets: at most ${FILE_OCTETS_MAX} are read`)
    }
    const buffer = size > spare.length ? Buffer.alloc(size + (size >> 2)) : spare
    let length = 0
    while (length < size) {
      const count = readSync(descriptor, buffer, length, size - length, length)
      if (count === 0) break
      length += count
    }
    return buffer.subarray(0, length)
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || !('syscall' in error)) throw error
    throw manifestError(path, 1, `can't be read: ${error.message}`)
  } finally {
    if (descriptor !== -1) closeSync(descriptor)
  }
}

/** One pass over one file. */
class FileReading {
  readonly #path: string
  readonly #previous: ManifestFile | undefined
  readonly #documents: HeldDocument[] = []
  readonly #errors: InputError[] = []
  readonly #onIgnored: ((warning: InputError) => void) | undefined
  /** Documents of `previous` that the ranges still to come may be found equal to. */
  #known: readonly HeldDocument[] = []
  #knownByDigest: Map<string, HeldDocument> | undefined
  #prefix = 0
  #previousRecords: Map<string, HeldRecord> | undefined

  constructor(
    path: string,
    previous: ManifestFile | undefined,
    onIgnored: ((warning: InputError) => void) | undefined,
  ) {
    this.#path = path
    this.#previous = previous
    this.#onIgnored = onIgnored
  }

  /** Announces the ranges, so that what is equal at the beginning costs no search. */
  expect(ranges: readonly DocumentRange[]): void {
    this.#known = this.#previous?.documents ?? []
    while (isSame(this.#known[this.#prefix], ranges[this.#prefix])) this.#prefix++
  }

  document(octets: Buffer, range: DocumentRange): void {
    const known = this.#findKnown(range)
    if (known !== undefined) {
      known.line = range.line
      this.#documents.push(known)
      return
    }
    const { start, end, isAscii } = range
    const text = isAscii ? '' : this.#decode(octets.subarray(start, end), range.line)
    if (text === undefined) return
    const value = isAscii ? parseAsciiDocument(octets, start, end) : parseOneDocument(text)
    if (value instanceof YamlProblem) {
      this.#refuseFile(range.line + value.line - 1, value.message)
      return
    }
    const lineOf = (path: readonly (string | number)[]): number =>
      range.line + findLine(octets.toString('utf8', start, end), 0, path) - 1
    this.#hold(value, range, lineOf)
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
      this.#hold(value, range, (path) => findLine(text, index, path))
    }
  }

  json(octets: Buffer): void {
    const text = this.#decode(octets, 1)
    if (text === undefined) return
    let value: YamlValue
    try {
      value = JSON.parse(text) as YamlValue
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      // V8 quotes the text after a comma.
      const reason = error.message.replace(/, "[\s\S]*$/, ' in JSON')
      this.#refuseFile(lineOfSyntaxError(error, text), reason)
      return
    }
    this.#hold(value, { line: 1, digestA: 0, digestB: 0 }, (path) => findLine(text, 0, path))
  }

  finish(): ManifestFile {
    const isKept = this.#errors.length > 0 && this.#previous !== undefined
    const documents = isKept ? this.#previous.documents : this.#documents
    return { path: this.#path, documents, errors: this.#errors }
  }

  /** Refuses octets that are no UTF-8: replaced, they would be served as something else. */
  #decode(octets: Buffer, firstLine: number): string | undefined {
    if (isUtf8(octets)) return octets.toString('utf8')
    const line = firstLine + countLinesBeforeFault(octets)
    this.#refuseFile(line, 'octets that are no UTF-8; save the file as UTF-8')
    return undefined
  }

  /** A document with problems is read anew: their lines may have moved. */
  #findKnown(range: DocumentRange): HeldDocument | undefined {
    const index = this.#documents.length
    const inPlace = index < this.#prefix ? this.#known[index] : undefined
    const known = inPlace ?? this.#findByDigest(range)
    return known?.records.some((r) => r.problem !== undefined) ? undefined : known
  }

  #findByDigest(range: DocumentRange): HeldDocument | undefined {
    if (this.#known.length === 0) return undefined
    this.#knownByDigest ??= new Map(
      this.#known.slice(this.#prefix).map((d) => [`${d.digestA} ${d.digestB}`, d]),
    )
    const key = `${range.digestA} ${range.digestB}`
    const known = this.#knownByDigest.get(key)
    // Once only: the second of two equal documents is a duplicate of its own.
    if (known !== undefined) this.#knownByDigest.delete(key)
    return known
  }

  #hold(
    value: YamlValue,
    at: Pick<DocumentRange, 'line' | 'digestA' | 'digestB'>,
    lineOf: (path: readonly (string | number)[]) => number,
  ): void {
    const items = itemsOf(value)
    const records: HeldRecord[] = []
    const probes: HealthProbe[] = []
    let isNamed = true
    for (const [index, item] of items.entries()) {
      const resource = validateResource(item)
      const prefix = item === value ? [] : ['items', index]
      if (resource.kind === 'probe') probes.push(resource.probe)
      else if (resource.kind === 'record') {
        const record = this.#holdRecord(resource)
        records.push(record)
        if (this.#onIgnored === undefined) continue
        for (const { path, message } of findIgnored(item)) {
          const line = lineOf([...prefix, ...path])
          this.#onIgnored(manifestError(this.#path, line, `${record.key}: ${message}`))
        }
      } else if (resource.kind === 'refused') {
        const line = lineOf([...prefix, ...resource.problem.path])
        if (resource.key === '') {
          isNamed = false
          this.#reportFile(line, resource.problem.message)
        } else records.push(this.#refuse(resource.key, line, resource.problem.message))
        if (this.#onIgnored !== undefined) this.#reportFurther(item, resource, prefix, lineOf)
      }
    }
    this.#documents.push({
      line: at.line,
      // A document that is a fault of the file has no record to remember that by: it is read anew.
      digestA: isNamed ? at.digestA : 0,
      digestB: isNamed ? at.digestB : 0,
      records: records.length === 0 ? NO_RECORDS : records,
      probes: probes.length === 0 ? NO_PROBES : probes,
    })
  }

  /** For `check`: nothing is served of a file that is only checked. */
  #reportFurther(
    item: YamlValue,
    { key, problem }: Resource & { kind: 'refused' },
    prefix: readonly (string | number)[],
    lineOf: (path: readonly (string | number)[]) => number,
  ): void {
    for (const { path, message } of findFurtherFaults(item, problem)) {
      const line = lineOf([...prefix, ...path])
      this.#errors.push(manifestError(this.#path, line, `${key} is refused: ${message}`))
    }
  }

  #holdRecord(resource: Resource & { kind: 'record' }): HeldRecord {
    const { namespace, name } = resource.record
    const key = joinLatin1(namespace, name)
    return new HeldRecord(key, packRecord(resource.record), this.#path)
  }

  #refuse(key: string, line: number, message: string): HeldRecord {
    const packed = this.#findPrevious(key)?.packed
    const kept = packed === undefined ? '' : ', its last good version is served'
    const error = manifestError(this.#path, line, `${key} is refused${kept}: ${message}`)
    return new HeldRecord(key, packed, this.#path, error)
  }

  #findPrevious(key: string): HeldRecord | undefined {
    this.#previousRecords ??= new Map(
      (this.#previous?.documents ?? []).flatMap((d) => d.records.map((r) => [r.key, r])),
    )
    return this.#previousRecords.get(key)
  }

  #reportFile(line: number, message: string): void {
    const kept = this.#previous === undefined ? '' : '; the file is served as it was before'
    this.#errors.push(manifestError(this.#path, line, `${message}${kept}`))
  }

  #refuseFile(line: number, message: string): void {
    this.#reportFile(line, message)
    // Keeps indexes of `#documents` in step with those of the ranges.
    this.#documents.push({ line, digestA: 0, digestB: 0, records: NO_RECORDS, probes: NO_PROBES })
  }
}

function isSame(known: HeldDocument | undefined, range: DocumentRange | undefined): boolean {
  if (known === undefined || range === undefined) return false
  return known.digestA === range.digestA && known.digestB === range.digestB
}

/** Lines in front of the first one that is no UTF-8: no character spans two. */
function countLinesBeforeFault(octets: Buffer): number {
  let start = 0
  for (let line = 0; ; line++) {
    const end = octets.indexOf(NEWLINE, start)
    if (end === -1 || !isUtf8(octets.subarray(start, end))) return line
    start = end + 1
  }
}

/** Line of the offset that V8 names in its message; else where YAML, of which JSON is a part, ends. */
function lineOfSyntaxError(error: SyntaxError, text: string): number {
  const position = /at position (\d+)/.exec(error.message)?.[1]
  if (position !== undefined) return text.slice(0, Number(position)).split('\n').length
  const values = parseDocuments(text)
  return values instanceof YamlProblem ? values.line : 1
}
