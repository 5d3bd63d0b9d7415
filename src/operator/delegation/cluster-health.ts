import { findDownTargets } from '../../health/down-targets.ts'
import { listTargets, type PeerEndpoint, type SiteState } from '../../peering/peer-endpoint.ts'
import { HEARD_MS, type QuorumPeer } from '../../peering/quorum/heard-sites.ts'
import { printProbed, toPeerEndpoint } from '../../peering/to-peer-endpoint.ts'
import type { Endpoint } from '../../records/dns-record.ts'
import type { HealthCheck } from '../../records/health-check.ts'
import { outOf } from '../../records/site-facts.ts'
import { validateEndpoint } from '../../records/validate/dns-record.ts'
import type { ClusterView } from '../cluster/cluster-view.ts'
import { type HealthFacts, SILENT } from '../peers/peer-health.ts'
import type { Publishing } from '../plan/decide.ts'
import type { OwnHealth } from '../plan/own.ts'
import { authoritativeHost } from './authoritative-record.ts'
import type { HeardClusters } from './heard-clusters.ts'
import { type OwnedPart, readOwnedParts } from './whole.ts'

/** What this cluster knows of the others whose delegating records it publishes. `cluster`: short id. */
export interface FollowedClusters {
  /** Monotonic milliseconds of the last answer of its API server; -Infinity = none since the start. */
  heardMsOf(cluster: string): number
  /** The health check of one of its records that delegate to this authoritative record. */
  checkOf(cluster: string, authoritativeKey: string): HealthCheck | undefined
  /** True once its records were read. */
  isKnown(cluster: string): boolean
  /**
   * True if the records of all clusters that delegate to this authoritative record were read and reconciled. What takes
   * longer than the longest time between two reconciles is not waited for.
   */
  readonly hasAll: (authoritativeKey: string) => boolean
}

export const NO_CLUSTERS: FollowedClusters = {
  heardMsOf: () => Number.NEGATIVE_INFINITY,
  checkOf: () => undefined,
  isKnown: () => false,
  hasAll: () => true,
}

/**
 * Least silence after which addresses are removed. An API server is asked every 3 s, and its return is noticed only if
 * the checks which sites are heard have seen the silence.
 */
const SILENT_MS_MIN = HEARD_MS + 2000

interface ClusterScene {
  readonly view: Pick<ClusterView, 'record' | 'healthOf'>
  readonly site: string
  readonly clusters: FollowedClusters
  /** The other clusters that contribute, and when each was last heard. */
  readonly heard: HeardClusters
  /** How long a silent site keeps its addresses that no check finds up. */
  readonly silentMs: number
}

/**
 * What decides about the addresses that other clusters put into an authoritative record, in the form in which peers
 * report: each cluster is a site that is heard while its API server answers. Only it and this cluster know its
 * addresses, so a number of sites that must agree does not apply. undefined = no other cluster contributes.
 */
export function clusterFacts(whole: Publishing, scene: ClusterScene): HealthFacts | undefined {
  const { record } = whole
  const { view, clusters, heard, silentMs } = scene
  const parts = readOwnedParts(record)
  const foreign = parts.filter(({ owner }) => owner.cluster !== '')
  if (foreign.length === 0) return undefined
  const rootHost = authoritativeHost(whole.rootHost)
  const ours = parts.filter(({ owner }) => owner.cluster === '')
  const ids = [...new Set(foreign.map(({ owner }) => owner.cluster))].sort()
  const states = ids.map((id): SiteState => {
    const own = foreign.filter(({ owner }) => owner.cluster === id)
    const site = own[0]!.site
    return {
      site,
      exporter: id,
      isOwn: true,
      rootHost,
      endpoints: own.flatMap((part) => endpointsOf(part, site, rootHost)),
      seenMs: wasSilent(own) ? clusters.heardMsOf(id) : heard.get(id)!.state!.seenMs,
      generation: 'v2',
    }
  })
  const keys = ours.flatMap(({ name }) => (name === '' ? [] : [`${record.namespace}/${name}`]))
  const checks = [
    ...keys.sort().map((key) => view.record(key)?.healthCheck),
    ...ids.map((id) => clusters.checkOf(id, record.key)),
  ]
  const healthCheck = checks.find((check) => check !== undefined)
  const endpoints = ours.flatMap((part) => validOf(part, rootHost))
  const wasChecked = foreign.some(({ owner, isChecked }) => {
    return isChecked === true && !clusters.isKnown(owner.cluster)
  })
  return {
    publishing: { ...whole, content: { ...whole.content, endpoints, healthCheck } },
    followed: states.map(({ site, exporter }) => new ClusterPeer(exporter, site, clusters)),
    quorum: 0,
    isCheckMissing: healthCheck === undefined && wasChecked,
    silentMs: Math.max(silentMs, SILENT_MS_MIN),
    own: ours.flatMap((part) => endpointsOf(part, scene.site, rootHost)),
    health: joinHealth(keys.map((key) => view.healthOf(key))),
    siteStates: states,
    local: undefined,
    merged: record,
  }
}

/** Another cluster as a peer whose answers are those of its API server. */
class ClusterPeer implements QuorumPeer {
  readonly id: string
  readonly address: string
  readonly ownSite: string
  readonly observationCount = 0
  readonly #clusters: FollowedClusters

  constructor(cluster: string, site: string, clusters: FollowedClusters) {
    this.id = `cluster ${cluster} ${site}`
    this.address = cluster
    this.ownSite = site
    this.#clusters = clusters
  }

  get lastAnswerMs(): number {
    return this.#clusters.heardMsOf(this.address)
  }

  observationsOf(): readonly [] {
    return []
  }
}

/**
 * What of a part of another cluster is out of service, if that differs from what its own operator reports. `down`: the
 * addresses that are down, with the reasons.
 */
export function decidedOf(
  part: OwnedPart,
  down: ReadonlyMap<string, string>,
  rootHost: string,
): OwnedPart['decided'] {
  if (part.owner.cluster === '') return undefined
  const targets = listTargets(endpointsOf(part, part.site, authoritativeHost(rootHost)))
  const out = [...new Set(targets)].filter((target) => down.has(target))
  const reported = new Set(printProbed(Object.keys(part.down)))
  const isSame = reported.size === out.length && out.every((target) => reported.has(target))
  return isSame ? undefined : Object.fromEntries(out.map((target) => [target, down.get(target)!]))
}

/** A site that was silent for too long counts as silent until it is heard, even if the status has no time for it. */
function wasSilent(parts: readonly OwnedPart[]): boolean {
  return parts.some((part) => Object.values(outOf(part)).includes(SILENT))
}

function validOf({ endpoints }: OwnedPart, rootHost: string): Endpoint[] {
  return endpoints.flatMap((object) => {
    const scanned = validateEndpoint(object, rootHost)
    return 'endpoint' in scanned ? [scanned.endpoint] : []
  })
}

/** Targets that the part's operator reports down are endpoints of their own. */
function endpointsOf(part: OwnedPart, site: string, rootHost: string): PeerEndpoint[] {
  const valid = validOf(part, rootHost)
  const downTargets = findDownTargets(valid, Object.keys(part.down))
  return valid.flatMap((endpoint, i) => {
    const split = (health: 'down' | 'unknown'): PeerEndpoint[] => {
      const isDown = health === 'down'
      const rdata = endpoint.rdata.filter((_, index) => downTargets[i]!.has(index) === isDown)
      if (rdata.length === 0) return []
      return [toPeerEndpoint({ ...endpoint, rdata }, { site, rootHost, health, sinceSeconds: 0 })]
    }
    return [...split('unknown'), ...split('down')]
  })
}

function joinHealth(all: readonly OwnHealth[]): OwnHealth {
  return {
    down: all.flatMap(({ down }) => down),
    up: all.flatMap(({ up }) => up),
    probes: all.flatMap(({ probes }) => probes),
  }
}
