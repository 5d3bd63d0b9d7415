/**
 * Accepts octets for another thread, so that they are not copied. `begin` returns room, the caller
 * writes from there into `octets`, and `end` sets the end. One piece at a time, and no other calls
 * in between.
 */
export interface OctetChannel {
  /** Its start is aligned to 8 octets. */
  readonly octets: Buffer
  /**
   * Returns the offset in `octets` of room for up to `octetsMax` octets, or -1: dropped and counted.
   * The offset is a multiple of 4 if all pieces are.
   */
  begin(octetsMax: number): number
  /** Ends the piece begun last at offset `end`. */
  end(end: number): void
}
