import type { RingWriter } from '../../base/ring.ts'
import { type LineWriter, NEWLINE, viewOf } from '../../telemetry/lines.ts'

/** Lines are put together into records of up to this many octets, so that the reader has few. */
const RECORD_OCTETS = 16_384

/** A data thread's log lines: written into the ring's memory itself, and visible from `flush` on. */
export class RingLines implements LineWriter {
  readonly octets: Buffer
  readonly view: DataView
  readonly #ring: RingWriter
  readonly #tag: number
  readonly #ringBell: () => void
  /** Of the record under way: its lines are in `octets` from #start to #end; #limit 0 = there is none. */
  #start = 0
  #end = 0
  #limit = 0

  constructor(ring: RingWriter, tag: number, ringBell: () => void) {
    this.octets = ring.octets
    this.view = viewOf(ring.octets)
    this.#ring = ring
    this.#tag = tag
    this.#ringBell = ringBell
  }

  /** @hot */
  begin(octetsMax: number): number {
    const needed = octetsMax + 1
    if (this.#end + needed <= this.#limit) return this.#end
    this.flush()
    const room = Math.max(RECORD_OCTETS, needed)
    const start = this.#ring.begin(room)
    if (start === -1) return -1
    this.#start = start
    this.#end = start
    this.#limit = start + room
    return start
  }

  /** @hot */
  end(end: number): void {
    this.octets[end] = NEWLINE
    this.#end = end + 1
  }

  /** Before anything else is written to the ring, and after every batch. @hot */
  flush(): void {
    if (this.#limit === 0) return
    this.#limit = 0
    // Nothing came of it: the next record starts at the same place.
    if (this.#end === this.#start) return
    if (this.#ring.end(this.#tag, this.#end - this.#start)) this.#ringBell()
  }
}
