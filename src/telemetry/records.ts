/**
 * Accepts records of 32-bit integers for another thread. `begin` returns room, the caller writes
 * from there into `words`, and `end` sets the end of the record. One record at a time, and no other
 * calls in between.
 */
export interface RecordWriter {
  readonly words: Int32Array
  /**
   * Returns the index in `words` of room for a record of up to `wordsMax`, or -1: dropped and
   * counted.
   */
  begin(wordsMax: number): number
  /** Ends the record begun last at index `end`. */
  end(end: number): void
}
