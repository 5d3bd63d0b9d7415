import type { RingWriter } from '../../base/ring.ts'
import { type LineWriter, NEWLINE, viewOf } from '../../base/telemetry/lines.ts'
import type { OctetChannel } from '../../base/telemetry/octet-channel.ts'

/**
 * Output of one kind is joined into ring records of up to this many octets, so that the reader gets
 * few records.
 */
const GROUP_OCTETS = 16_384

/**
 * The lines and other octets of a data thread, written directly into the ring's memory. They are visible
 * from `flush` on, in the order in which they were written, whatever their tag.
 */
export class RingGroups {
  readonly octets: Buffer
  readonly view: DataView
  readonly #ring: RingWriter
  readonly #wake: () => void
  /** The open group: its data is in `octets` from #start to #end; #limit 0 = no group is open. */
  #tag = 0
  #start = 0
  #end = 0
  #limit = 0

  constructor(ring: RingWriter, wake: () => void) {
    this.octets = ring.octets
    this.view = viewOf(ring.octets)
    this.#ring = ring
    this.#wake = wake
  }

  /**
   * Returns the offset in `octets` of room for up to `octetsMax` octets, or -1: dropped and
   * counted. @hot
   */
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

  /** Ends what the last `begin` started. @hot */
  end(end: number): void {
    this.#end = end
  }

  /** Closes the group. Called before anything else is written to the ring, and after every batch. @hot */
  flush(): void {
    if (this.#limit === 0) return
    this.#limit = 0
    // The group is empty: the next group starts at the same place.
    if (this.#end === this.#start) return
    if (this.#ring.end(this.#tag, this.#end - this.#start)) this.#wake()
  }
}

/** Writes log lines into a ring. */
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

/** Writes octets into a ring, in which groups start at multiples of 8. */
export class RingOctets implements OctetChannel {
  readonly octets: Buffer
  readonly #groups: RingGroups
  readonly #tag: number

  constructor(groups: RingGroups, tag: number) {
    this.octets = groups.octets
    this.#groups = groups
    this.#tag = tag
  }

  /** @hot */
  begin(octetsMax: number): number {
    return this.#groups.begin(this.#tag, octetsMax)
  }

  /** @hot */
  end(end: number): void {
    this.#groups.end(end)
  }
}
