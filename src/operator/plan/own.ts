import { printLatin1 } from '../../base/latin1.ts'
import { RRType } from '../../dns/iana/types.ts'
import type { Endpoint } from '../../dnsrecord/dns-record.ts'
import { deriveLocalEndpoints, isExportable, V2_LABEL } from '../../dnsrecord/kdrnt.ts'
import { scanTarget } from '../../dnsrecord/validate/target.ts'
import type { HealthObservation } from '../../health/address-health.ts'
import { findDownTargets } from '../../health/down-targets.ts'
import { type EndpointDrain, isActive, NO_DRAINS } from '../../health/drain/drain.ts'
import { groupDrain } from '../../health/drain/group-drains.ts'
import { drainAll, drainBySetting } from '../../health/drain/record-drain.ts'
import { DRAINED_TYPES } from '../../health/drain/selector.ts'
import { selectInService } from '../../health/in-service.ts'
import type { ApiObject } from '../../kube/api.ts'
import { findUnexportedFailover } from '../../peering/export-settings.ts'
import type { PeerEndpoint } from '../../peering/peer-endpoint.ts'
import { composeObservation } from '../../peering/quorum/observation-codec.ts'
import { carrySince, toPeerEndpoints } from '../../peering/to-peer-endpoint.ts'
import { composePeerEndpoint, scanPeerEndpoint } from '../../peering/v2-codec.ts'
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
  /** The current `local-<name>`, which holds the time of each endpoint's last change. */
  readonly before: DnsRecordView | undefined
  readonly nowMs: number
}

/**
 * Our own endpoints of a record. The exported form keeps the time of each endpoint's last change,
 * so neither a reconcile nor a restart changes it. Endpoints of a passive cluster, and those that an
 * annotation drains, are down, so that they are served only where no other site has any. Peers of
 * generation v1 get none of a passive cluster.
 */
export function composeOwn(publishing: Publishing, facts: OwnFacts): Own {
  const { content, record } = publishing
  const { site, health, before, nowMs, membership } = facts
  const { down, up } = health
  const drain = findDrain(publishing, facts)
  const reported = toPeerEndpoints(content, {
    site,
    key: record.key,
    down,
    up,
    drains: drain === undefined ? NO_DRAINS : drainAll(content.endpoints, drain),
    sinceSeconds: content.createdSeconds,
  })
  const earlier = before === undefined ? undefined : readExportedBy(before)
  // Without an earlier export, the time of each endpoint is the creation time of its record.
  const shared =
    earlier === undefined ? reported : carrySince(earlier, reported, Math.floor(nowMs / 1000))
  const rdata = shared.map(composePeerEndpoint).filter((one) => one !== undefined)
  const endpoints = isPassive(membership)
    ? content.endpoints.filter(({ type }) => !DRAINED_TYPES.has(type))
    : dropDown(content.endpoints, down)
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
  const setting = content.settings?.drain
  const drain = setting && drainBySetting(record.key, setting, site)
  return drain !== undefined && isActive(drain, nowMs) ? drain : undefined
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

/**
 * The endpoints without targets that are down, as peers of generation v1 do not evaluate health. If all targets of a
 * name and type are down, all of them are kept.
 */
function dropDown(endpoints: readonly Endpoint[], down: readonly string[]): readonly Endpoint[] {
  if (down.length === 0) return endpoints
  const isDown = findDownTargets(endpoints, down)
  const groups = new Map<string, number[]>()
  for (const [i, { owner, type }] of endpoints.entries()) {
    const key = `${printLatin1(owner)} ${type}`
    groups.set(key, [...(groups.get(key) ?? []), i])
  }
  const working = [...endpoints]
  for (const group of groups.values()) {
    const left = selectInService(
      group.map((i) => ({ count: endpoints[i]!.rdata.length, isOut: (t) => isDown[i]!.has(t) })),
    )
    for (const [at, i] of group.entries()) {
      const { rdata } = endpoints[i]!
      working[i] = { ...endpoints[i]!, rdata: left[at]!.map((t) => rdata[t]!) }
    }
  }
  return working.filter(({ rdata }) => rdata.length > 0)
}
