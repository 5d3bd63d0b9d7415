import type { RingWriter } from '../../base/ring.ts'
import { type LineWriter, NEWLINE, viewOf } from '../../telemetry/lines.ts'
import type { RecordWriter } from '../../telemetry/records.ts'

/** What is of one kind is put together into records of the ring of up to this many octets: the reader has few. */
const GROUP_OCTETS = 16_384

/**
 * What a data thread tells line by line, written into the ring's memory itself, and visible from `flush` on. All
 * of it in the order in which it came, whichever tag it has.
 */
export class RingGroups {
  readonly octets: Buffer
  readonly view: DataView
  readonly words: Int32Array
  readonly #ring: RingWriter
  readonly #wake: () => void
  /** Of the group under way: what it has is in `octets` from #start to #end; #limit 0 = there is none. */
  #tag = 0
  #start = 0
  #end = 0
  #limit = 0

  constructor(ring: RingWriter, wake: () => void) {
    this.octets = ring.octets
    this.view = viewOf(ring.octets)
    this.words = new Int32Array(ring.octets.buffer, ring.octets.byteOffset, ring.octets.length / 4)
    this.#ring = ring
    this.#wake = wake
  }

  /** Offset in `octets` of room for something of up to `octetsMax`, or -1: dropped and counted. @hot */
  begin(tag: number, octetsMax: number): number {
    if (tag === this.#tag && this.#end + octetsMax <= this.#limit) return this.#end
    return this.#beginGroup(tag, octetsMax)
  }

  #beginGroup(tag: number, octetsMax: number): number {
    this.flush()
    const room = Math.max(GROUP_OCTETS, octetsMax)
    const start = this.#ring.begin(room)
    if (start === -1) return -1
    this.#tag = tag
    this.#start = start
    this.#end = start
    this.#limit = start + room
    return start
  }

  /** Ends what was begun last. @hot */
  end(end: number): void {
    this.#end = end
  }

  /** Before anything else is written to the ring, and after every batch. @hot */
  flush(): void {
    if (this.#limit === 0) return
    this.#limit = 0
    // Nothing came of it: the next group starts at the same place.
    if (this.#end === this.#start) return
    if (this.#ring.end(this.#tag, this.#end - this.#start)) this.#wake()
  }
}

/** Log lines on their way through a ring. */
export class RingLines implements LineWriter {
  readonly octets: Buffer
  readonly view: DataView
  readonly #groups: RingGroups
  readonly #tag: number

  constructor(groups: RingGroups, tag: number) {
    this.octets = groups.octets
    this.view = groups.view
    this.#groups = groups
    this.#tag = tag
  }

  /** @hot */
  begin(octetsMax: number): number {
    return this.#groups.begin(this.#tag, octetsMax + 1)
  }

  /** @hot */
  end(end: number): void {
    this.octets[end] = NEWLINE
    this.#groups.end(end + 1)
  }

  write(lines: Uint8Array): void {
    const at = this.#groups.begin(this.#tag, lines.length)
    if (at === -1) return
    this.octets.set(lines, at)
    this.#groups.end(at + lines.length)
  }
}

/** Records on their way through a ring, where groups start at multiples of 8. */
export class RingRecords implements RecordWriter {
  readonly words: Int32Array
  readonly #groups: RingGroups
  readonly #tag: number

  constructor(groups: RingGroups, tag: number) {
    this.words = groups.words
    this.#groups = groups
    this.#tag = tag
  }

  /** @hot */
  begin(wordsMax: number): number {
    const at = this.#groups.begin(this.#tag, wordsMax << 2)
    return at === -1 ? -1 : at >> 2
  }

  /** @hot */
  end(end: number): void {
    this.#groups.end(end << 2)
  }
}
