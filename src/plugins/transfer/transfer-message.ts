import { copyOctets } from '../../base/octets.ts'
import { RRClass } from '../../dns/iana/classes.ts'
import { RRType } from '../../dns/iana/types.ts'
import { HEADER_OCTETS } from '../../dns/message/parse-query.ts'
import type { RecordView } from '../../xfr/journal/record-view.ts'

/** Type, class, TTL and rdata length of a record, which follow its owner. */
const RR_FIXED_OCTETS = 10
const POINTER_OCTETS = 2
/** Refers to the question's name, which is the apex. */
const APEX_POINTER = 0xc000 | HEADER_OCTETS

/**
 * The records of one message of a transfer. Of the compression of names (RFC 1035 section 4.1.4) it uses only
 * pointers to the apex, in owners and in the rdata of RFC 1035's common types: that needs no table of earlier names.
 */
export class TransferMessage {
  /** Records so far. */
  count = 0
  /** Offset behind the last record. */
  at = 0
  readonly #apex: Uint8Array
  /** Octets of the zone's name where a name ends with it. */
  readonly #apexEndOctets: number
  #out: Uint8Array = new Uint8Array(0)
  #end = 0

  /** `apex`: lower-case wire form. */
  constructor(apex: Uint8Array) {
    this.#apex = apex
    // The root is shorter than a pointer to it.
    this.#apexEndOctets = apex.length === 1 ? 1 : POINTER_OCTETS
  }

  /** Begins a message: records are written to `out` from `at` to before `end`. */
  begin(out: Uint8Array, at: number, end: number): void {
    this.#out = out
    this.at = at
    this.#end = end
    this.count = 0
  }

  /** Adds a record. Returns false, and changes nothing, if there is no room. */
  addRecord(record: RecordView): boolean {
    const { owner, ownerOffset } = record
    let labels = 0
    while (owner[ownerOffset + labels] !== 0) labels += owner[ownerOffset + labels]! + 1
    return this.add(record, labels + 1 - this.#apex.length)
  }

  /** As `addRecord`; the owner has `ownerOctets` octets above the apex, 0 = it is the apex. */
  add(record: RecordView, ownerOctets: number): boolean {
    const { type, ttlSeconds, rdataOctets } = record
    const out = this.#out
    let at = this.at
    if (at + ownerOctets + this.#apexEndOctets + RR_FIXED_OCTETS + rdataOctets > this.#end)
      return false
    copyOctets(record.owner, record.ownerOffset, out, at, ownerOctets)
    at = this.#putApex(at + ownerOctets)
    out[at] = type >> 8
    out[at + 1] = type & 0xff
    out[at + 2] = 0
    out[at + 3] = RRClass.IN
    out[at + 4] = ttlSeconds >>> 24
    out[at + 5] = (ttlSeconds >> 16) & 0xff
    out[at + 6] = (ttlSeconds >> 8) & 0xff
    out[at + 7] = ttlSeconds & 0xff
    at += RR_FIXED_OCTETS
    const end = this.#putRdata(record, at)
    out[at - 2] = (end - at) >> 8
    out[at - 1] = (end - at) & 0xff
    this.at = end
    this.count++
    return true
  }

  #putApex(at: number): number {
    if (this.#apexEndOctets === 1) this.#out[at] = 0
    else {
      this.#out[at] = APEX_POINTER >> 8
      this.#out[at + 1] = APEX_POINTER & 0xff
    }
    return at + this.#apexEndOctets
  }

  /** Writes the rdata at `at`, and returns the offset behind it. */
  #putRdata({ type, rdata, rdataOffset, rdataOctets }: RecordView, at: number): number {
    const end = rdataOffset + rdataOctets
    switch (type) {
      case RRType.NS:
      case RRType.CNAME:
      case RRType.PTR:
        return this.#putName(rdata, rdataOffset, end, at)
      case RRType.MX:
        copyOctets(rdata, rdataOffset, this.#out, at, 2)
        return this.#putName(rdata, rdataOffset + 2, end, at + 2)
      default:
        copyOctets(rdata, rdataOffset, this.#out, at, rdataOctets)
        return at + rdataOctets
    }
  }

  /** Writes the name that ends at `end`. */
  #putName(bytes: Uint8Array, from: number, end: number, at: number): number {
    const apex = this.#apex
    const suffix = end - apex.length
    let label = from
    while (label < suffix) label += bytes[label]! + 1
    // Upper case stays as it is: clients show it.
    const isInside =
      label === suffix && apex.length > POINTER_OCTETS && endsWith(bytes, label, apex)
    const octets = (isInside ? suffix : end) - from
    copyOctets(bytes, from, this.#out, at, octets)
    return isInside ? this.#putApex(at + octets) : at + octets
  }
}

function endsWith(bytes: Uint8Array, from: number, apex: Uint8Array): boolean {
  for (let i = 0; i < apex.length; i++) if (bytes[from + i] !== apex[i]) return false
  return true
}
