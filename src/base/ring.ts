/**
 * 32-bit integers before the records: octets written, octets read (both never reset), records
 * dropped.
 */
const WRITTEN = 0
const READ = 1
const DROPPED = 2
/** 1 = the reader has got a wakeup and has not read yet. */
const WAKEUP = 3
const HEADER_OCTETS = 16

/** A record: tag (32 bits), octets (32 bits), the octets, zeros up to a multiple of 8. */
const RECORD_HEADER_OCTETS = 8
/** Replaces a tag: no record follows up to the end of the memory. */
const SKIP = 0xffffffff

/**
 * A bounded queue of records from one thread to another, in shared memory. If the queue is full,
 * the writer drops the record and counts it: it never waits.
 *
 *     ┌────────┬───────┬──────────────┬──────┬───────────────┐
 *     │ header │ …free │ tag│n│octets… │ tag… │ free…         │      written - read = octets in use
 *     └────────┴───────┴──▲───────────┴──────┴─▲─────────────┘
 *                        read % size         written % size
 */
export function createRing(octets: number): SharedArrayBuffer {
  return new SharedArrayBuffer(HEADER_OCTETS + octets)
}

/** The end of the thread that writes. */
export class RingWriter {
  /** The memory that the caller of `begin` writes to. */
  readonly octets: Buffer
  readonly #header: Int32Array
  readonly #words: Uint32Array
  readonly #size: number
  /** Offset in `octets` of the header of the open record. */
  #at = 0

  /** `memory`: from `createRing`, its size a power of two. */
  constructor(memory: SharedArrayBuffer) {
    this.#header = new Int32Array(memory, 0, HEADER_OCTETS / 4)
    this.#size = memory.byteLength - HEADER_OCTETS
    this.octets = Buffer.from(memory, HEADER_OCTETS, this.#size)
    this.#words = new Uint32Array(memory, HEADER_OCTETS, this.#size / 4)
  }

  /**
   * Returns the offset in `octets` of room for a record of up to `octetsMax`, or -1: dropped. An
   * empty ring has room for any record whose header and octets together use at most half of it.
   * @hot
   */
  begin(octetsMax: number): number {
    const needed = RECORD_HEADER_OCTETS + ((octetsMax + 7) & ~7)
    const written = this.#header[WRITTEN]!
    const free = this.#size - ((written - Atomics.load(this.#header, READ)) | 0)
    const at = written & (this.#size - 1)
    const toEnd = this.#size - at
    if (needed <= toEnd) {
      if (needed > free) return this.#drop()
      this.#at = at
      return at + RECORD_HEADER_OCTETS
    }
    if (toEnd + needed > free) return this.#drop()
    this.#words[at >> 2] = SKIP
    Atomics.store(this.#header, WRITTEN, (written + toEnd) | 0)
    this.#at = 0
    return RECORD_HEADER_OCTETS
  }

  /**
   * Makes `octets` of the record visible that the last `begin` started. True: the reader does not
   * know of data yet, so send it a wakeup. @hot
   */
  end(tag: number, octets: number): boolean {
    const at = this.#at >> 2
    this.#words[at] = tag
    this.#words[at + 1] = octets
    const length = RECORD_HEADER_OCTETS + ((octets + 7) & ~7)
    Atomics.store(this.#header, WRITTEN, (this.#header[WRITTEN]! + length) | 0)
    // An atomic load: a plain one could run before the store above, and the wakeup would be missed.
    return (
      Atomics.load(this.#header, WAKEUP) === 0 && Atomics.exchange(this.#header, WAKEUP, 1) === 0
    )
  }

  #drop(): number {
    this.#header[DROPPED]!++
    return -1
  }
}

/** The end of the thread that reads. */
export class RingReader {
  readonly #header: Int32Array
  readonly #words: Uint32Array
  readonly #octets: Buffer
  readonly #size: number
  #droppedTaken = 0

  constructor(memory: SharedArrayBuffer) {
    this.#header = new Int32Array(memory, 0, HEADER_OCTETS / 4)
    this.#size = memory.byteLength - HEADER_OCTETS
    this.#octets = Buffer.from(memory, HEADER_OCTETS, this.#size)
    this.#words = new Uint32Array(memory, HEADER_OCTETS, this.#size / 4)
  }

  /** Makes the writer send a wakeup again. Call it before `drain`, so that no record is missed. */
  waitForWake(): void {
    Atomics.store(this.#header, WAKEUP, 0)
  }

  /** Visits all records. `octets` is valid only during the call. Returns false if there were none. */
  drain(visit: (tag: number, octets: Buffer) => void): boolean {
    const written = Atomics.load(this.#header, WRITTEN)
    let read = this.#header[READ]!
    if (read === written) return false
    while (read !== written) {
      const at = read & (this.#size - 1)
      const tag = this.#words[at >> 2]!
      if (tag === SKIP) {
        read = (read + this.#size - at) | 0
        continue
      }
      const octets = this.#words[(at >> 2) + 1]!
      const start = at + RECORD_HEADER_OCTETS
      visit(tag, this.#octets.subarray(start, start + octets))
      read = (read + RECORD_HEADER_OCTETS + ((octets + 7) & ~7)) | 0
      Atomics.store(this.#header, READ, read)
    }
    Atomics.store(this.#header, READ, read)
    return true
  }

  /** Records dropped since the last call. */
  takeDropped(): number {
    const dropped = this.#header[DROPPED]!
    const taken = (dropped - this.#droppedTaken) | 0
    this.#droppedTaken = dropped
    return taken
  }
}
