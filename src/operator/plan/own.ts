import { RRType } from '../../dns/iana/types.ts'
import type { HealthObservation } from '../../health/address-health.ts'
import { type EndpointDrain, isActive, NO_DRAINS } from '../../health/drain/drain.ts'
import { findOutTargets } from '../../health/drain/drained-targets.ts'
import { groupDrain } from '../../health/drain/group-drains.ts'
import { selectEndpoints } from '../../health/drain/in-service-endpoints.ts'
import { drainAll, drainBySetting } from '../../health/drain/record-drain.ts'
import { DRAINED_TYPES } from '../../health/drain/selector.ts'
import type { ApiObject } from '../../kube/api.ts'
import { findUnexportedFailover } from '../../peering/export-settings.ts'
import type { PeerEndpoint } from '../../peering/peer-endpoint.ts'
import { composeObservation } from '../../peering/quorum/observation-codec.ts'
import { carrySince, toPeerEndpoints } from '../../peering/to-peer-endpoint.ts'
import { composePeerEndpoint, scanPeerEndpoint } from '../../peering/v2-codec.ts'
import type { DnsRecord, Endpoint } from '../../records/dns-record.ts'
import { deriveLocalEndpoints, isExportable, V2_LABEL } from '../../records/kdrnt.ts'
import { scanTarget } from '../../records/validate/target.ts'
import { isPassive, type Membership } from '../groups/membership.ts'
import { printLocalEndpoints } from '../record/endpoint-text.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import type { AddressProbe } from '../status/conditions.ts'
import type { Publishing } from './decide.ts'

/** Known health of a record's own addresses and host names. */
export interface OwnHealth {
  readonly down: readonly string[]
  readonly up: readonly string[]
  /** All addresses that are probed, for the condition. */
  readonly probes: readonly AddressProbe[]
}

/**
 * What a site exports of one of its records: `shared` with health and time.
 */
export interface Own {
  readonly shared: readonly PeerEndpoint[]
  /** Returns `local-<name>` with what this site observed of addresses of peers. */
  readonly composeLocal: (observed: readonly HealthObservation[]) => readonly ApiObject[]
  /** The drain that takes all endpoints out of service now; undefined = they are not drained. */
  readonly drain: EndpointDrain | undefined
  /**
   * Endpoints that can't be exported completely: they, or the name that exports them, are too long.
   */
  readonly unexportable: number
  /** Why the failover list is not exported; '' = the list is exported, or the record has no list. */
  readonly failoverFault: string
  /** Unix time in milliseconds at which the drain by an annotation ends; undefined = none ends. */
  readonly drainEndsMs: number | undefined
}

interface OwnFacts {
  readonly site: string
  /** Undefined = this cluster belongs to no group. */
  readonly membership: Membership | undefined
  readonly health: OwnHealth
  /** True = the clock of our API server is wrong. */
  readonly isUndated?: boolean | undefined
  /** True if another record of this cluster has a target in service at the name and type of an endpoint. */
  readonly isElsewhere: (endpoint: Endpoint) => boolean
  /** The current `local-<name>`, which holds the time of each endpoint's last change. */
  readonly before: DnsRecordView | undefined
  readonly nowMs: number
}

/**
 * Our own endpoints of a record. The exported form keeps the time of each endpoint's last change,
 * so neither a reconcile nor a restart changes it. Endpoints of a passive cluster, and those that an
 * annotation drains, are down, so they are served only if no other record or site has one in service.
 * v1 peers get none of a passive cluster.
 */
export function composeOwn(publishing: Publishing, facts: OwnFacts): Own {
  const { content, record } = publishing
  const { site, health, isUndated, before, nowMs, membership } = facts
  const { down, up } = health
  const drain = findDrain(publishing, facts)
  const drains = drain === undefined ? NO_DRAINS : drainAll(content.endpoints, drain)
  const reported = toPeerEndpoints(content, {
    site,
    key: record.key,
    down,
    up,
    drains,
    isUndated,
    sinceSeconds: content.createdSeconds,
  })
  const earlier = before === undefined ? undefined : readExportedBy(before)
  // Without an earlier export, the time of each endpoint is the creation time of its record.
  const shared =
    earlier === undefined ? reported : carrySince(earlier, reported, Math.floor(nowMs / 1000))
  const rdata = shared.map(composePeerEndpoint).filter((one) => one !== undefined)
  const { out } = findOutTargets(content.endpoints, down, drains)
  // v1 peers evaluate neither health nor drains.
  const endpoints = isPassive(membership)
    ? content.endpoints.filter(({ type }) => !DRAINED_TYPES.has(type))
    : selectEndpoints(content.endpoints, out, facts.isElsewhere).endpoints
  const working = { ...content, endpoints }
  const composeLocal = (observed: readonly HealthObservation[]): readonly ApiObject[] => {
    const observations = observed
      .map((one) => composeObservation({ ...one, site }))
      .filter((one) => one !== undefined)
    return printLocalEndpoints(deriveLocalEndpoints(working, rdata, observations))
  }
  const unexportable = shared.length - (isExportable(content.rootHost) ? rdata.length : 0)
  const untilMs = content.settings?.drain?.untilMs
  const drainEndsMs = untilMs !== undefined && nowMs < untilMs ? untilMs : undefined
  const failoverFault = findUnexportedFailover(content)
  return { shared, composeLocal, drain, unexportable, failoverFault, drainEndsMs }
}

/** Returns the drain of a record whose cluster is passive, or which an annotation drains. */
function findDrain(
  { content, record, zone }: Publishing,
  { site, membership, nowMs }: OwnFacts,
): EndpointDrain | undefined {
  if (isPassive(membership)) return groupDrain(membership!.group, site, zone)
  return findAnnotated(record.key, content, { site, nowMs })
}

/** Returns the drain that an annotation of the record asks for and that is in force. */
function findAnnotated(
  key: string,
  { settings }: Pick<DnsRecord, 'settings'>,
  { site, nowMs }: { readonly site: string; readonly nowMs: number },
): EndpointDrain | undefined {
  const drain = settings?.drain && drainBySetting(key, settings.drain, site)
  return drain !== undefined && isActive(drain, nowMs) ? drain : undefined
}

/** Returns the endpoints of a record that have targets in service, with these targets. */
export function findInService(
  key: string,
  content: DnsRecord,
  facts: { readonly health: OwnHealth; readonly site: string; readonly nowMs: number },
): readonly Endpoint[] {
  const drain = findAnnotated(key, content, facts)
  const drains = drain === undefined ? NO_DRAINS : drainAll(content.endpoints, drain)
  const { out } = findOutTargets(content.endpoints, facts.health.down, drains)
  return content.endpoints.filter(({ rdata }, i) => out[i]!.size < rdata.length)
}

/** Endpoints that a `local-<name>` exports, with health and time. */
export function readExportedBy(local: DnsRecordView): readonly PeerEndpoint[] {
  return local.endpoints
    .filter(({ recordType, dnsName }) => {
      return recordType === 'TXT' && dnsName.startsWith(`${V2_LABEL}.`)
    })
    .map(({ targets }) => {
      const strings = targets.map((text) => scanTarget(RRType.TXT, text))
      return scanPeerEndpoint(Buffer.concat(strings.filter((one) => typeof one !== 'string')))
    })
    .filter((endpoint) => typeof endpoint !== 'string')
}
