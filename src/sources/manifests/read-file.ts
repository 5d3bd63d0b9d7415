import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { beginProgress, type WorkProgress } from '../../base/telemetry/progress.ts'
import {
  DOCUMENT_OCTETS_MAX,
  type DocumentRange,
  DocumentSplitter,
} from '../../yaml/split-documents.ts'
import { JsonSplitter } from '../../yaml/split-json.ts'
import { FileReading, isReadAsJson, type ReadingOptions } from './file-reading.ts'
import { type ManifestFile, manifestError } from './manifest-file.ts'

/** Larger files are refused. */
const FILE_OCTETS_MAX = 128 * 1024 * 1024
/** Maximum number of documents and list items per file. */
const DOCUMENTS_MAX = 1_000_000
/** The read buffer is reused up to this size. */
const KEPT_OCTETS_MAX = 4 * 1024 * 1024
/** Octets read between two pauses. */
const CHUNK_OCTETS = 1024 * 1024
const TOO_LONG = `is longer than ${DOCUMENT_OCTETS_MAX} octets: split it into several with lines of ---`

const NO_OCTETS = Buffer.alloc(0)
/** The buffer for the next file; empty while a file is being read. */
let kept: Buffer = NO_OCTETS

export interface ReadOptions extends ReadingOptions {
  /**
   * Lets other work run if it is due. Called for each document, and for each part of a large one.
   */
  readonly pause: () => Promise<void> | undefined
  /** Longer documents, and longer items of lists, are refused: each is read without a pause. */
  readonly documentOctetsMax?: number
}

/**
 * Reads one manifest file. Documents identical to those of `previous` are reused without parsing.
 * If the file itself is invalid, the result has the errors and the documents of `previous`. Throws
 * InputError if the file cannot be read.
 */
export async function readManifestFile(path: string, options: ReadOptions): Promise<ManifestFile> {
  // The buffer is taken out of `kept`, because files of other directories may be read while this
  // one pauses.
  const buffer = kept
  kept = NO_OCTETS
  const octets = await readOctets(path, buffer, options)
  const file = await readManifestOctets(path, octets, options)
  if (octets.buffer.byteLength <= KEPT_OCTETS_MAX) kept = Buffer.from(octets.buffer)
  return file
}

/** As `readManifestFile`, for the content of a file. `path`: for messages. */
export async function readManifestOctets(
  path: string,
  octets: Buffer,
  options: ReadOptions,
): Promise<ManifestFile> {
  const progress = beginProgress(path)
  try {
    const read = isReadAsJson(path, options) ? readJson : readYaml
    return await read(path, octets, { ...options, progress })
  } finally {
    progress.end()
  }
}

type WholeOptions = ReadOptions & { readonly progress: WorkProgress }

async function readYaml(
  path: string,
  octets: Buffer,
  options: WholeOptions,
): Promise<ManifestFile> {
  const reading = new FileReading(path, options)
  const splitter = new DocumentSplitter(octets, octets.length)
  const isComplete = await readAll(reading, octets, splitter, options)
  const { ended } = splitter
  if (isComplete && ended.kind === 'directive') {
    const whole = new FileReading(path, options)
    whole.stream(octets)
    return whole.finish()
  }
  if (isComplete && ended.kind === 'large') reading.fail(ended.line, `a document ${TOO_LONG}`)
  return reading.finish()
}

async function readJson(
  path: string,
  octets: Buffer,
  options: WholeOptions,
): Promise<ManifestFile> {
  const reading = new FileReading(path, options)
  const splitter = JsonSplitter.open(octets)
  if (splitter === undefined) {
    const { documentOctetsMax = DOCUMENT_OCTETS_MAX } = options
    if (octets.length > DOCUMENT_OCTETS_MAX) reading.fail(1, `a resource in JSON ${TOO_LONG}`)
    else if (octets.length > documentOctetsMax) reading.fail(1, tooLongHere(documentOctetsMax))
    else reading.document(octets, wholeOf(octets))
    return reading.finish()
  }
  reading.beginList(splitter.head, 1)
  const isComplete = await readAll(reading, octets, splitter, options)
  const { largeLine, tail, tailLine } = splitter
  if (largeLine > 0) reading.fail(largeLine, `an item ${TOO_LONG}`)
  else if (isComplete) reading.endList(tail, tailLine)
  return reading.finish()
}

function tooLongHere(octetsMax: number): string {
  return `a document may have up to ${octetsMax} octets here`
}

/** Returns false if it stopped at a fault, which has been reported. */
async function readAll(
  reading: FileReading,
  octets: Buffer,
  splitter: { next(): DocumentRange | undefined },
  { pause, progress, documentOctetsMax = DOCUMENT_OCTETS_MAX }: WholeOptions,
): Promise<boolean> {
  let count = 0
  for (let range = splitter.next(); range !== undefined; range = splitter.next()) {
    if (++count > DOCUMENTS_MAX) {
      reading.fail(range.line, `a file has up to ${DOCUMENTS_MAX} documents: split it`)
      return false
    }
    if (range.end - range.start > documentOctetsMax) {
      reading.fail(range.line, tooLongHere(documentOctetsMax))
      return false
    }
    if (reading.isHopeless) return false
    progress.at(range.start, octets.length)
    while (!reading.prepare(range)) await pause()
    reading.document(octets, range)
    const paused = pause()
    if (paused !== undefined) await paused
  }
  return true
}

function wholeOf({ length }: Buffer): DocumentRange {
  const digest = { digestA: 0, digestB: 0 }
  return { start: 0, end: length, line: 1, ...digest, isAscii: false, part: 'whole' }
}

/** Returns the octets of a file, in `spare` if they fit. */
async function readOctets(path: string, spare: Buffer, { pause }: ReadOptions): Promise<Buffer> {
  let descriptor = -1
  try {
    // If the path is now a pipe, opening it must not wait for a writer.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const stats = fstatSync(descriptor)
    if (!stats.isFile()) throw manifestError(path, 1, 'is not a file')
    const { size } = stats
    if (size > FILE_OCTETS_MAX) {
      throw manifestError(path, 1, `file of ${size} octets: at most ${FILE_OCTETS_MAX} are read`)
    }
    const buffer = size > spare.length ? Buffer.allocUnsafeSlow(size + (size >> 2)) : spare
    let length = 0
    while (length < size) {
      const count = readSync(
        descriptor,
        buffer,
        length,
        Math.min(CHUNK_OCTETS, size - length),
        length,
      )
      if (count === 0) break
      length += count
      if (length < size) await pause()
    }
    return buffer.subarray(0, length)
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || !('syscall' in error)) throw error
    throw manifestError(path, 1, `cannot be read: ${error.message}`)
  } finally {
    if (descriptor !== -1) closeSync(descriptor)
  }
}
