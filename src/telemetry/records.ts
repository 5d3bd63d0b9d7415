/**
 * Takes records of 32-bit words on their way to another thread: ask for room with `begin`, write from there into
 * `words`, and say with `end` where the record ends. One at a time, nothing in between.
 */
export interface RecordWriter {
  readonly words: Int32Array
  /** Index in `words` of room for a record of up to `wordsMax`, or -1: dropped and counted. */
  begin(wordsMax: number): number
  /** Ends the record begun last, which came to index `end`. */
  end(end: number): void
}
