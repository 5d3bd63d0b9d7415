import type { AddressHealth } from '../health/address-health.ts'
import { OBSERVED_ADDRESSES_MAX } from '../health/observed-addresses.ts'
import { findAliasLeaves, findLeaves } from '../health/record-probes.ts'
import type { ProbedLeaves } from '../health/record-probing.ts'
import { isObjectRecord } from '../records/object-record-key.ts'
import { isForeign, type ProbeSource, type RecordSource } from '../records/record-source.ts'
import type { OwnedSource } from '../sources/owned-source.ts'
import type { HealthOptions } from './health-options.ts'

/** Records, with the addresses of ALIAS endpoints, and which of these this server probes. */
export interface ProbedRecords {
  readonly open: () => Pick<RecordSource, 'records' | 'find' | 'subscribe'>
  /** Equal for equal records. Without a newline. */
  readonly key: string
  readonly probes: ProbeSource
  /** Receives what is found. */
  readonly health: AddressHealth
  readonly leavesOf?: ProbedLeaves
  readonly probesMax?: number
}

const NO_PROBES: ProbeSource = { probes: () => [], onProbes: () => () => {} }

type Opened = Pick<ProbedRecords, 'open' | 'key'>

/**
 * Returns the records of a cluster, for what the operator does not probe: addresses of objects that are not DNSRecords,
 * and those that ALIAS endpoints stand for.
 */
export function recordsOfCluster(
  { source, ownership }: Pick<OwnedSource, 'source' | 'ownership'>,
  opened: Opened,
): ProbedRecords {
  const leavesOf: ProbedLeaves = ({ key, packed }, { endpoints }) => {
    if (ownership.zoneKeyOf(packed) === '') return []
    return isObjectRecord(key) ? findLeaves(endpoints) : findAliasLeaves(endpoints)
  }
  const { health } = source
  return { ...opened, probes: NO_PROBES, health, leavesOf, probesMax: OBSERVED_ADDRESSES_MAX }
}

/**
 * Returns the records of all sites, for what the ALIAS endpoints of other sites stand for: each site resolves these
 * itself, so it can ask no other site about their addresses.
 */
export function recordsOfPeers(health: AddressHealth, opened: Opened): ProbedRecords {
  const leavesOf: ProbedLeaves = (record, { endpoints }) => {
    return isForeign(record) ? findAliasLeaves(endpoints) : []
  }
  return { ...opened, probes: NO_PROBES, health, leavesOf, probesMax: OBSERVED_ADDRESSES_MAX }
}

/** As `how`, for a second set of records: the file with the results belongs to the first one. */
export function withoutFile(how: HealthOptions): HealthOptions {
  const { probe } = how
  return probe === undefined || probe === 'off' ? how : { ...how, probe: { ...probe, file: '' } }
}
