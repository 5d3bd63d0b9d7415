/** Number of a zone inside one image: 1..65535, never reused while readers may hold it. */
export type ZoneId = number

/** One RRset as the caller passes it to the writer. */
export interface RRsetData {
  readonly type: number
  /** 0..2^31-1 (RFC 2181 section 8). */
  readonly ttlSeconds: number
  /** At least one, each uncompressed wire rdata of 0..65535 octets, in the order to serve. */
  readonly rdata: readonly Uint8Array[]
  /**
   * Encoded steering, opaque to the image: `steering/` writes it, a `Steerer` reads it. It names
   * rdata by index. Absent = answers contain the whole set. Of type RRSIG: the signature directory.
   */
  readonly steering?: Uint32Array | undefined
}

/** The choice of a `Steerer`: which rdata to serve, in which order. Reused. */
export class Choice {
  /** Number of chosen rdata; 0 = none, answer NODATA. */
  count = 0
  /** Indexes into the RRset's rdata. */
  readonly index: Uint16Array = new Uint16Array(4096)
  /** TTL of the chosen records; -1 = the RRset's own. */
  ttlSeconds = -1
  /** Number of the chosen answer, for its signatures; -1 = unknown. A steerer sets it for queries with DO. */
  answer = -1
}
