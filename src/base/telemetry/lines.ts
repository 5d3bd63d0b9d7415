/**
 * Accepts log lines as octets, so that a line needs no string. `begin` returns room, the caller
 * writes from there into `octets`, and `end` sets the end of the line. One line at a time, and no
 * other calls in between.
 */
export interface LineWriter {
  readonly octets: Buffer
  /** The same memory, with the same offsets. */
  readonly view: DataView
  /**
   * Returns the offset in `octets` of room for a line of up to `octetsMax`, or -1: dropped and
   * counted.
   */
  begin(octetsMax: number): number
  /** Ends the line begun last at offset `end`, and adds the newline. */
  end(end: number): void
  /** Accepts whole lines, newlines included, or drops and counts them all. */
  write(lines: Uint8Array): void
}

/** Longest line that is written from a string, in UTF-16 code units; longer ones are cut. */
const LINE_LENGTH_MAX = 327_680
/** Most octets of a code unit in UTF-8. */
const UTF8_OCTETS_MAX = 3

/** Writes one line of text, without its newline. */
export function printLine(lines: LineWriter, text: string): void {
  const cut = text.length > LINE_LENGTH_MAX ? text.slice(0, LINE_LENGTH_MAX) : text
  const at = lines.begin(cut.length * UTF8_OCTETS_MAX)
  if (at !== -1) lines.end(at + lines.octets.write(cut, at))
}

export const NEWLINE = 0x0a

/** The destination of a `LineBuffer`. */
export interface OctetSink {
  /** True while the sink still reads octets written before: they must not change. */
  isBusy(): boolean
  /** Writes `octets`, and calls `done` later: once it has read them, or with the error that lost them. */
  write(octets: Buffer, done: (error?: Error | null) => void): void
}

/** Octets of each of the two halves. */
const HALF_OCTETS = 2 ** 20
/** Waiting lines are written at once when they reach this size, else at the end of the turn. */
const FLUSH_OCTETS = 65_536

/**
 * Buffers log lines for a stream: the lines of one turn of the event loop are sent in one write. It
 * has two halves: one is being filled, and the stream may still be reading the other. If the stream
 * is so slow that both are full, lines are dropped and counted.
 */
export class LineBuffer implements LineWriter {
  octets: Buffer = Buffer.allocUnsafeSlow(HALF_OCTETS)
  view: DataView = viewOf(this.octets)
  /** Lines that were dropped because both halves were full, or that the sink lost. */
  dropped = 0
  #other: Buffer = Buffer.allocUnsafeSlow(HALF_OCTETS)
  #otherView: DataView = viewOf(this.#other)
  #filled = 0
  #isDue = false
  readonly #sink: OctetSink
  /** Runs a function at the end of the turn. */
  readonly #defer: (run: () => void) => void
  readonly #flush = (): void => {
    this.#isDue = false
    this.flush()
  }

  constructor(sink: OctetSink, defer: (run: () => void) => void) {
    this.#sink = sink
    this.#defer = defer
  }

  begin(octetsMax: number): number {
    if (!this.#hasRoom(octetsMax + 1)) {
      this.dropped++
      return -1
    }
    return this.#filled
  }

  end(end: number): void {
    this.octets[end] = NEWLINE
    this.#grow(end + 1)
  }

  /** Accepts whole lines, newlines included, or drops them all. `lines`: at most HALF_OCTETS. */
  write(lines: Uint8Array): void {
    if (!this.#hasRoom(lines.length)) {
      this.dropped += countLines(lines)
      return
    }
    this.octets.set(lines, this.#filled)
    this.#grow(this.#filled + lines.length)
  }

  /** Passes waiting lines to the sink, unless the sink is still busy with the last ones. */
  flush(): void {
    if (this.#filled === 0 || this.#sink.isBusy()) return
    const { octets, view } = this
    const filled = this.#filled
    this.octets = this.#other
    this.view = this.#otherView
    this.#other = octets
    this.#otherView = view
    this.#filled = 0
    const written = octets.subarray(0, filled)
    this.#sink.write(written, (error) => {
      if (error) this.dropped += countLines(written)
      this.#flush()
    })
  }

  #hasRoom(octets: number): boolean {
    if (this.#filled + octets > HALF_OCTETS) this.flush()
    return this.#filled + octets <= HALF_OCTETS
  }

  #grow(filled: number): void {
    this.#filled = filled
    if (filled >= FLUSH_OCTETS) this.flush()
    if (this.#filled === 0 || this.#isDue) return
    this.#isDue = true
    this.#defer(this.#flush)
  }
}

/** A view of all of `octets`, with the same offsets. */
export function viewOf(octets: Uint8Array): DataView {
  return new DataView(octets.buffer, octets.byteOffset, octets.length)
}

function countLines(lines: Uint8Array): number {
  let count = 0
  for (let i = 0; i < lines.length; i++) if (lines[i] === NEWLINE) count++
  return count
}
