import { type Fetch, type Fetching, fetchZone } from '../client/fetch-zone.ts'
import { RRClass, RRType } from '../dns/iana/index.ts'
import type { ResourceRecord } from '../dns/message/message.ts'
import { KDRNT_ZONE } from '../record/kdrnt.ts'
import type { ZoneRecords } from '../zone/zonefile/records.ts'
import { PEER_ENDPOINTS_MAX } from './read-told.ts'
import { isEndpointType, isTold, PEER_OCTETS_MAX } from './shared-zone.ts'

/** Limits of one transfer. Octets: as they come; what is kept of them has limits of its own. */
const IDLE_MS = 10_000
const TOTAL_MS = 10 * 60_000
const OCTETS_MAX = 256 * 1024 * 1024
/** Records of differences: where there are more, all of the zone costs less. */
const STEP_RECORDS_MAX = 100_000

export interface ToldFetch
  extends Pick<Fetch, 'primary' | 'source' | 'key' | 'soa' | 'serial' | 'clock' | 'timers'> {
  /** The zone has addresses and aliases, as every peer's of whatever generation has. */
  readonly onOthers: () => void
}

/** Asks a peer for its zone kdrnt. Of its records only those that tell endpoints whole are kept. */
export function fetchTold({ onOthers, ...fetch }: ToldFetch): Fetching {
  const keeps = (record: ResourceRecord): boolean => {
    if (isEndpointType(record.type)) onOthers()
    return isTold(record)
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
      stepRecordsMax: STEP_RECORDS_MAX,
    },
  })
}

/** The SOA of a zone that was transferred whole. */
export function apexSoa(records: ZoneRecords): ResourceRecord | undefined {
  const node = records.find(KDRNT_ZONE, KDRNT_ZONE.length)
  for (
    let i = node === -1 ? -1 : records.firstRecord[node]!;
    i !== -1;
    i = records.nextRecord[i]!
  ) {
    if (records.type[i] !== RRType.SOA) continue
    const ttlSeconds = records.ttlSeconds[i]!
    const rdata = records.rdata(i).slice()
    return { owner: KDRNT_ZONE, type: RRType.SOA, rrclass: RRClass.IN, ttlSeconds, rdata }
  }
  return undefined
}
