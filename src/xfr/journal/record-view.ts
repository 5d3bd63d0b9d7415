/**
 * One record in place. It is valid until the next one is requested; the buffers that it refers to
 * are valid for longer.
 */
export interface RecordView {
  /** Uncompressed wire form; the name starts at `ownerOffset`. */
  owner: Uint8Array
  ownerOffset: number
  type: number
  ttlSeconds: number
  rdata: Uint8Array
  rdataOffset: number
  rdataOctets: number
}

/** Returns the octets of the owner, fixed fields and rdata of a record with uncompressed names. */
export function recordOctets({ owner, ownerOffset, rdataOctets }: RecordView): number {
  let at = ownerOffset
  while (owner[at] !== 0) at += owner[at]! + 1
  return at + 1 - ownerOffset + 10 + rdataOctets
}
