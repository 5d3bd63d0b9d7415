import { copyOctets } from '../../base/octets.ts'
import { ScannedRecord, type ZoneSink } from './sink.ts'

const FIRST_CHUNK_OCTETS = 4096
const CHUNK_OCTETS_MAX = 1024 * 1024
/** Octets of a record beside its owner and rdata: the length of the owner and four fields. */
const FIXED_OCTETS = 13
/** Length of an owner that is the one before. */
const SAME_OWNER = 0xff
/** Records between two pauses. */
const SLICE_RECORDS = 512

/** A record as the caller adds it. */
export type LoggedRecord = Omit<ScannedRecord, 'file' | 'line'>

/** The records of a log as plain data, which can move to another thread. */
export interface PlainRecordLog {
  readonly chunks: readonly Uint8Array<ArrayBuffer>[]
  /** Lower-case wire form. */
  readonly zone: Uint8Array
  readonly origin: string
  readonly recordCount: number
  /** As `RecordLog` has them. */
  readonly ownerCount: number
  readonly octetCount: number
}

/**
 * The records of one zone one after the other, in chunks of memory: what a transfer keeps until its end.
 *
 *     owner octets | owner without the zone | type 16 | TTL 32 | line 32 | rdata octets 16 | rdata
 */
export class RecordLog {
  recordCount = 0
  /** Owners that are not the one before. */
  ownerCount = 0
  /** Records of the last owner since another one. */
  runCount = 0
  /** Octets of names, each once if its records follow each other, and of rdata. */
  octetCount = 0
  readonly #zone: Uint8Array
  readonly #origin: string
  readonly #chunks: Uint8Array<ArrayBuffer>[] = []
  #chunk: Uint8Array<ArrayBuffer> = new Uint8Array(0)
  #used = 0
  /** Where the relative owner of the last record is in `#ownerChunk`; -1 octets = no record yet. */
  #ownerChunk = this.#chunk
  #ownerAt = 0
  #ownerOctets = -1

  /** `zone`: lower-case wire form, the end of each owner. `origin`: the `file` of the records. */
  constructor(zone: Uint8Array, origin: string) {
    this.#zone = zone
    this.#origin = origin
  }

  /** Adds a record of class IN. `line`: its place, for messages. */
  add(record: LoggedRecord, line: number): void {
    const { owner, ownerOctets, type, ttlSeconds, rdata, rdataOffset, rdataOctets } = record
    const relative = ownerOctets - this.#zone.length
    const isSame = this.#isSameOwner(owner, relative)
    const named = isSame ? 0 : relative
    this.#reserve(FIXED_OCTETS + named + rdataOctets)
    const chunk = this.#chunk
    let at = this.#used
    chunk[at++] = isSame ? SAME_OWNER : relative
    this.runCount++
    if (!isSame) {
      this.runCount = 1
      this.#ownerChunk = chunk
      this.#ownerAt = at
      this.#ownerOctets = relative
      this.ownerCount++
      this.octetCount += ownerOctets
      copyOctets(owner, 0, chunk, at, relative)
    }
    at = put16(chunk, at + named, type)
    at = put16(chunk, put16(chunk, at, ttlSeconds >>> 16), ttlSeconds)
    at = put16(chunk, put16(chunk, at, line >>> 16), line)
    at = put16(chunk, at, rdataOctets)
    copyOctets(rdata, rdataOffset, chunk, at, rdataOctets)
    this.#used = at + rdataOctets
    this.octetCount += rdataOctets
    this.recordCount++
  }

  #isSameOwner(owner: Uint8Array, octets: number): boolean {
    if (octets !== this.#ownerOctets) return false
    const chunk = this.#ownerChunk
    const start = this.#ownerAt
    // Names of one list often differ at the end of their first label.
    for (let i = octets - 1; i >= 0; i--) if (chunk[start + i] !== owner[i]) return false
    return true
  }

  #reserve(octets: number): void {
    if (this.#used + octets <= this.#chunk.length) return
    this.#closeChunk()
    const wanted = Math.min(Math.max(this.#chunk.length * 2, FIRST_CHUNK_OCTETS), CHUNK_OCTETS_MAX)
    this.#chunk = new Uint8Array(Math.max(wanted, octets))
    this.#used = 0
  }

  #closeChunk(): void {
    if (this.#used > 0) this.#chunks.push(this.#chunk.subarray(0, this.#used))
  }

  /** Ends the log and returns its content. */
  finish(): PlainRecordLog {
    this.#closeChunk()
    this.#used = 0
    this.#chunk = new Uint8Array(0)
    const { recordCount, ownerCount, octetCount } = this
    const [zone, origin, chunks] = [this.#zone, this.#origin, this.#chunks]
    return { chunks, zone, origin, recordCount, ownerCount, octetCount }
  }
}

/** Hands the records of a log to a sink, in their order, until the sink ends it; pauses now and then. */
export function* readLog(
  { chunks, zone, origin }: PlainRecordLog,
  sink: ZoneSink,
): Generator<void, void> {
  const record = new ScannedRecord()
  record.file = origin
  let count = 0
  for (const chunk of chunks) {
    record.rdata = chunk
    for (let at = 0; at < chunk.length; ) {
      at = readRecord(chunk, at, zone, record)
      if (!sink.add(record)) return
      if (++count % SLICE_RECORDS === 0) yield
    }
  }
}

/** Reads the record at `at` into `record`; returns where it ends. */
function readRecord(
  chunk: Uint8Array,
  start: number,
  zone: Uint8Array,
  record: ScannedRecord,
): number {
  let at = start
  const relative = chunk[at++]!
  if (relative !== SAME_OWNER) {
    copyOctets(chunk, at, record.owner, 0, relative)
    copyOctets(zone, 0, record.owner, relative, zone.length)
    record.ownerOctets = relative + zone.length
    at += relative
  }
  record.type = get16(chunk, at)
  record.ttlSeconds = get16(chunk, at + 2) * 0x10000 + get16(chunk, at + 4)
  record.line = get16(chunk, at + 6) * 0x10000 + get16(chunk, at + 8)
  record.rdataOctets = get16(chunk, at + 10)
  record.rdataOffset = at + 12
  return record.rdataOffset + record.rdataOctets
}

function put16(octets: Uint8Array, at: number, value: number): number {
  octets[at] = value >>> 8
  octets[at + 1] = value
  return at + 2
}

function get16(octets: Uint8Array, at: number): number {
  return (octets[at]! << 8) | octets[at + 1]!
}
