import { type Fetch, fetchZone } from '../client/fetch-zone.ts'
import { Rcode } from '../dns/iana/index.ts'
import { KDRNT_ZONE } from '../records/local-zone.ts'
import type { Received, TransferFilter } from '../xfr/in/transfer-reader.ts'
import { isEndpointType, isV2Record, PEER_OCTETS_MAX } from './peer-zone.ts'
import { PEER_ENDPOINTS_MAX } from './read-v2.ts'

/** Limits of one transfer. Octets: as received. The part that is kept has its own limits. */
const IDLE_MS = 10_000
const TOTAL_MS = 10 * 60_000
const OCTETS_MAX = 256 * 1024 * 1024
/**
 * Limits of all records, kept or not, with uncompressed names. A name of two octets on the wire can
 * have 255.
 */
const SEEN_RECORDS_MAX = 3_000_000
const SEEN_OCTETS_MAX = 512 * 1024 * 1024
/** Maximum of records in differences. Above that, a full transfer is cheaper. */
const STEP_RECORDS_MAX = 100_000

interface PeerZoneFetch
  extends Pick<
    Fetch,
    'primary' | 'source' | 'key' | 'soa' | 'serial' | 'clock' | 'timers' | 'signal'
  > {
  /** Called if the zone has addresses and aliases, as peers of all generations have. */
  readonly onOthers: () => void
}

const REFUSALS: ReadonlySet<number> = new Set([
  Rcode.FORMERR,
  Rcode.NXDOMAIN,
  Rcode.NOTIMP,
  Rcode.REFUSED,
  Rcode.NOTAUTH,
])

/** True for an rcode that refuses a transfer. */
export function isRefusal(rcode: number): boolean {
  return REFUSALS.has(rcode)
}

/** Requests a peer's zone kdrnt. Keeps only the records that contain whole endpoints. */
export function fetchPeerZone({ onOthers, ...fetch }: PeerZoneFetch): Promise<Received> {
  const keeps: TransferFilter['keeps'] = (record) => {
    if (isEndpointType(record.type)) onOthers()
    return isV2Record(record)
  }
  return fetchZone({
    ...fetch,
    zone: KDRNT_ZONE,
    idleMs: IDLE_MS,
    totalMs: TOTAL_MS,
    octetsMax: OCTETS_MAX,
    filter: {
      keeps,
      recordsMax: PEER_ENDPOINTS_MAX,
      octetsMax: PEER_OCTETS_MAX,
      seenRecordsMax: SEEN_RECORDS_MAX,
      seenOctetsMax: SEEN_OCTETS_MAX,
      stepRecordsMax: STEP_RECORDS_MAX,
    },
  })
}
