import { RRType } from '../../dns/iana/types.ts'
import type { Response } from '../../dns/message/response.ts'
import { ZONE_APEX_NODE } from '../image/layout.ts'
import type { ZoneReader } from '../image/reader.ts'

/** The five numbers at the end of a SOA; the serial is the first. */
const SOA_NUMBERS_OCTETS = 20

/** Puts the serial of a zone into a response (RFC 9660). `labels`: of the apex, without the root. */
export function noteVersion(
  reader: ZoneReader,
  zone: number,
  labels: number,
  response: Response,
): void {
  const { words, bytes, view } = reader
  const soa = reader.findRRset(reader.visibleBody(words[zone + ZONE_APEX_NODE]!), RRType.SOA)
  if (soa === 0) return
  const at = reader.rdataStart(soa)
  const octets = (bytes[at]! << 8) | bytes[at + 1]!
  if (octets < SOA_NUMBERS_OCTETS) return
  response.zoneLabels = labels
  response.zoneSerial = view.getUint32(at + 2 + octets - SOA_NUMBERS_OCTETS)
}
