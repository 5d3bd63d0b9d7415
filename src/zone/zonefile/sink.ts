import { NAME_OCTETS_MAX } from '../../dns/name/name.ts'

/** One record of a master file, class IN. Reused for every record: copy the fields that you keep. */
export class ScannedRecord {
  /** Lower-case wire name in 0..ownerOctets-1, inside the zone. */
  readonly owner: Uint8Array = new Uint8Array(NAME_OCTETS_MAX)
  /** 1..255; 0 before the first owner. */
  ownerOctets = 0
  type = 0
  /** 0..2^31 - 1. */
  ttlSeconds = 0
  /** Has the uncompressed wire rdata, of `rdataOctets` octets from `rdataOffset` on. */
  rdata: Uint8Array = new Uint8Array(0)
  rdataOffset = 0
  rdataOctets = 0
  file = ''
  /** Line where the record starts, counted from 1. */
  line = 0
}

/** Receives the records of a zone one by one, in the order of the file. */
export interface ZoneSink {
  /** Returns false to end the scan. May use `record` only until it returns. */
  add(record: ScannedRecord): boolean
}
