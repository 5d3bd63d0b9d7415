import { OctetWriter } from '../../dns/rdata/octets.ts'
import { type RecordView, recordOctets } from './record-view.ts'

/*
 * Records one after the other, with uncompressed names:
 *
 *     owner | type 16 | TTL 32 | rdata octets 16 | rdata
 */
const FIXED_OCTETS = 8

/** Collects records, up to a number of octets. */
export class RecordPacker {
  readonly #output = new OctetWriter()
  readonly #octetsMax: number
  /** True once a record did not fit: the packed data is incomplete. */
  isFull = false

  constructor(octetsMax: number) {
    this.#octetsMax = octetsMax
  }

  add(record: RecordView): void {
    const octets = recordOctets(record)
    if (this.isFull || this.#output.length + octets > this.#octetsMax) {
      this.isFull = true
      return
    }
    const { owner, ownerOffset, rdata, rdataOffset, rdataOctets } = record
    const output = this.#output
    output.put(owner.subarray(ownerOffset, ownerOffset + octets - 10 - rdataOctets))
    output.u16(record.type)
    output.u32(record.ttlSeconds)
    output.u16(rdataOctets)
    output.put(rdata.subarray(rdataOffset, rdataOffset + rdataOctets))
  }

  get octets(): number {
    return this.#output.length
  }

  packed(): Uint8Array {
    return this.#output.octets()
  }
}

/** Yields the packed records. Each step reuses the same object. */
export function* packedRecords(packed: Uint8Array): Generator<RecordView, void> {
  const record = { owner: packed, ownerOffset: 0, rdata: packed, rdataOffset: 0 }
  const view: RecordView = { ...record, type: 0, ttlSeconds: 0, rdataOctets: 0 }
  const fields = new DataView(packed.buffer, packed.byteOffset, packed.byteLength)
  for (let at = 0; at < packed.length; ) {
    view.ownerOffset = at
    while (packed[at] !== 0) at += packed[at]! + 1
    at++
    view.type = fields.getUint16(at)
    view.ttlSeconds = fields.getUint32(at + 2)
    view.rdataOctets = fields.getUint16(at + 6)
    view.rdataOffset = at + FIXED_OCTETS
    at = view.rdataOffset + view.rdataOctets
    yield view
  }
}
