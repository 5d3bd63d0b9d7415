/**
 * Takes log lines as octets, so that a line needs no string: ask for room with `begin`, write from
 * there into `octets`, and say with `end` where the line ends. One line at a time, nothing in between.
 */
export interface LineWriter {
  readonly octets: Buffer
  /** The same memory, with the same offsets. */
  readonly view: DataView
  /** Offset in `octets` of room for a line of up to `octetsMax`, or -1: dropped and counted. */
  begin(octetsMax: number): number
  /** Ends the line begun last, which came to offset `end`; adds the newline. */
  end(end: number): void
  /** Takes whole lines, newlines included, or drops and counts them all. */
  write(lines: Uint8Array): void
}

/** Longest line that is written from a string, in UTF-16 code units; what is longer is cut. */
const LINE_LENGTH_MAX = 327_680
/** A code unit takes no more in UTF-8. */
const UTF8_OCTETS_MAX = 3

/** Writes one line of text, without its newline. */
export function printLine(lines: LineWriter, text: string): void {
  const cut = text.length > LINE_LENGTH_MAX ? text.slice(0, LINE_LENGTH_MAX) : text
  const at = lines.begin(cut.length * UTF8_OCTETS_MAX)
  if (at !== -1) lines.end(at + lines.octets.write(cut, at))
}

export const NEWLINE = 0x0a

/** Where a `LineBuffer` writes. */
export interface OctetSink {
  /** True while octets written before are still in the hands of the sink: they must stay as they are. */
  isBusy(): boolean
  /** Writes `octets`; calls `done` later, once they are taken. */
  write(octets: Buffer, done: () => void): void
}

/** Octets of each of the two halves. */
export const HALF_OCTETS = 2 ** 20
/** Waiting lines are written at once when they come to this much, else at the end of the turn. */
const FLUSH_OCTETS = 65_536

/**
 * Log lines on their way to a stream: those of one turn of the event loop go out in one write. It has
 * two halves, one that is being filled and one that the stream may still be reading; where the stream
 * is so slow that both are full, lines are dropped and counted.
 */
export class LineBuffer implements LineWriter {
  octets: Buffer = Buffer.allocUnsafeSlow(HALF_OCTETS)
  view: DataView = viewOf(this.octets)
  /** Lines that found no room. */
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

  /** Takes whole lines, newlines included, or drops them all. `lines`: at most HALF_OCTETS. */
  write(lines: Uint8Array): void {
    if (!this.#hasRoom(lines.length)) {
      this.dropped += countLines(lines)
      return
    }
    this.octets.set(lines, this.#filled)
    this.#grow(this.#filled + lines.length)
  }

  /** Hands what waits to the sink, unless that has not taken the last yet. */
  flush(): void {
    if (this.#filled === 0 || this.#sink.isBusy()) return
    const { octets, view } = this
    const filled = this.#filled
    this.octets = this.#other
    this.view = this.#otherView
    this.#other = octets
    this.#otherView = view
    this.#filled = 0
    this.#sink.write(octets.subarray(0, filled), this.#flush)
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

/** All of `octets`, with the same offsets. */
export function viewOf(octets: Uint8Array): DataView {
  return new DataView(octets.buffer, octets.byteOffset, octets.length)
}

function countLines(lines: Uint8Array): number {
  let count = 0
  for (let i = 0; i < lines.length; i++) if (lines[i] === NEWLINE) count++
  return count
}
