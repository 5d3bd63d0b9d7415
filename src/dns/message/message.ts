/**
 * Whole messages as plain objects, for the command line, transfers and tests: not for the hot path.
 * Names and rdata are uncompressed.
 */

export interface Question {
  readonly name: Uint8Array
  readonly type: number
  readonly rrclass: number
}

export interface ResourceRecord {
  readonly owner: Uint8Array
  readonly type: number
  readonly rrclass: number
  readonly ttlSeconds: number
  readonly rdata: Uint8Array
}

export interface EdnsOption {
  readonly code: number
  readonly data: Uint8Array
}

/** The OPT record (RFC 6891 section 6), without the extended rcode, which `Message.rcode` includes. */
export interface Edns {
  readonly payloadOctets: number
  readonly version: number
  /** 16 bits: EDNS_DNSSEC_OK and flags that are not assigned yet. */
  readonly flags: number
  readonly options: readonly EdnsOption[]
}

export interface Message {
  readonly id: number
  readonly opcode: number
  /** A union of `HeaderFlag`. */
  readonly flags: number
  /** All 12 bits; above 15 only with `edns`. */
  readonly rcode: number
  /** At most one question (RFC 9619). */
  readonly question: Question | undefined
  readonly answer: readonly ResourceRecord[]
  readonly authority: readonly ResourceRecord[]
  /** Without the OPT record. */
  readonly additional: readonly ResourceRecord[]
  readonly edns: Edns | undefined
}
