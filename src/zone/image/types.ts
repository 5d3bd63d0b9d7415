/** Number of a zone inside one image: 1..65535, never reused while readers may hold it. */
export type ZoneId = number

/** One RRset as the writer hands it in. */
export interface RRsetData {
  readonly type: number
  /** 0..2^31-1 (RFC 2181 section 8). */
  readonly ttlSeconds: number
  /** At least one, each uncompressed wire rdata of 0..65535 octets, in the order to serve. */
  readonly rdata: readonly Uint8Array[]
  /**
   * Steering words, opaque here: written by `steering/`, read by a `Steerer`. They name rdata by
   * index. Absent = the set is served whole.
   */
  readonly steering?: Uint32Array | undefined
}

/** What a `Steerer` chose: which rdata to serve, in which order. Reused. */
export class Choice {
  /** Rdata chosen; 0 = none, serve NODATA. */
  count = 0
  /** Indexes into the RRset's rdata. */
  readonly index: Uint16Array = new Uint16Array(4096)
  /** TTL of the chosen records; -1 = the RRset's own. */
  ttlSeconds = -1
}
