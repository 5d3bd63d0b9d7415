import { RRType } from '../dns/iana/types.ts'
import { scanAddress } from '../dns/text/address.ts'
import type { RecordHealth } from '../health/address-health.ts'
import { findDownTargets } from '../health/down-targets.ts'
import { NO_DRAINS, type RecordDrains } from '../health/drain/drain.ts'
import { findOutTargets } from '../health/drain/drained-targets.ts'
import type { DnsRecord, Endpoint } from '../records/dns-record.ts'
import { printHost, printTarget } from '../records/print-endpoint.ts'
import { recordId } from '../records/record-source.ts'
import { exportDrain, exportSettings } from './export-settings.ts'
import { type EndpointHealth, type PeerEndpoint, peerEndpointKey } from './peer-endpoint.ts'
import type { RecordFields } from './record-texts.ts'

/** Properties of an exported endpoint that the endpoint of its DNSRecord does not contain. */
type PeerEndpointFacts = Pick<PeerEndpoint, 'site' | 'rootHost' | 'health' | 'sinceSeconds'> &
  RecordFields

/** What a site knows of one of its records when it exports it. */
export interface RecordFacts {
  readonly site: string
  /** `namespace/name`. */
  readonly key: string
  /** Addresses and host names that probes found down, and up; all others are unknown. */
  readonly down: readonly string[]
  readonly up: readonly string[]
  readonly probedAt?: RecordHealth['probedAt']
  /**
   * Targets that this site drained, also by an annotation of the record. They are exported as down, and with the drain:
   * an older reader evaluates only the health.
   */
  readonly drains?: RecordDrains
  readonly sinceSeconds: number
  /** As in PeerEndpoint. */
  readonly isUndated?: boolean | undefined
}

/**
 * Returns the endpoints of one of our records as exported. If some targets of an endpoint are down,
 * the others are exported. If all are down, the endpoint is exported with all of them, as down. It
 * is up if probes found all its targets up.
 */
export function toPeerEndpoints(
  record: Pick<
    DnsRecord,
    'rootHost' | 'isWildcardHost' | 'endpoints' | 'createdSeconds' | 'settings'
  >,
  { site, key, down, up, probedAt = [], drains = NO_DRAINS, sinceSeconds, isUndated }: RecordFacts,
): PeerEndpoint[] {
  const rootHost = `${record.isWildcardHost ? '*.' : ''}${printHost(record.rootHost)}`
  const found = findOutTargets(record.endpoints, down, drains)
  const downTargets = found.out
  const { createdSeconds } = record
  const id = { recordId: recordId(key) }
  const about = { site, rootHost, sinceSeconds, createdSeconds, isUndated, ...id }
  const inService = exportSettings(record)
  const upTargets = findDownTargets(record.endpoints, up)
  return record.endpoints.flatMap((endpoint, i) => {
    // Every site resolves the ALIAS endpoint itself.
    if (endpoint.aliasOf !== undefined) return []
    const { rdata } = endpoint
    const isDown = (index: number): boolean => downTargets[i]!.has(index)
    const working = rdata.filter((_, index) => !isDown(index))
    const isUp = rdata.every((_, index) => isDown(index) || upTargets[i]!.has(index))
    const health: EndpointHealth = working.length === 0 ? 'down' : isUp ? 'up' : 'unknown'
    const probed = probedAt.find(({ address }) => isTarget(endpoint, address))
    const exported = {
      ...endpoint,
      ...(working.length === 0 ? {} : { rdata: working }),
      ...(probed === undefined ? {} : { probeAt: probed.probeAt }),
    }
    const drain = working.length === 0 ? exportDrain(found, i, rdata.length) : undefined
    const settings = drain === undefined ? inService : exportSettings(record, drain)
    return [toPeerEndpoint(exported, { ...about, health, settings })]
  })
}

function isTarget({ type, rdata }: Endpoint, text: string): boolean {
  if (type === RRType.CNAME) return rdata.some((target) => printHost(target) === text)
  const address = scanAddress(text)
  return rdata.some(
    (target) => address !== undefined && Buffer.compare(target, address.bytes) === 0,
  )
}

/** Returns a validated endpoint with what its site knows of it. */
export function toPeerEndpoint(endpoint: Endpoint, facts: PeerEndpointFacts): PeerEndpoint {
  const { createdSeconds = 0 } = facts
  return {
    endpoint: toCanonical(endpoint),
    site: facts.site,
    rootHost: facts.rootHost,
    health: facts.health,
    sinceSeconds: facts.sinceSeconds,
    ...(createdSeconds === 0 ? {} : { createdSeconds }),
    ...(facts.isUndated === true ? { isUndated: true } : {}),
    ...(facts.recordId === undefined ? {} : { recordId: facts.recordId }),
    ...(facts.settings === undefined ? {} : { settings: facts.settings }),
  }
}

/** Returns the endpoint with geo codes and targets once each, in the order of their texts. */
export function toCanonical(endpoint: Endpoint): Endpoint {
  const { type, rdata, codes } = endpoint
  if (rdata.length < 2 && codes.length < 2) return endpoint
  return {
    ...endpoint,
    codes: sortUniqueBy(codes, ({ text }) => text),
    rdata: sortUniqueBy(rdata, (target) => printTarget(type, target)),
  }
}

/** Returns addresses and host names of probes in the form of endpoint targets. */
export function printProbed(probed: readonly string[]): string[] {
  return probed.map((text) => {
    const address = scanAddress(text)
    if (address === undefined) return text
    return printTarget(address.family === 1 ? RRType.A : RRType.AAAA, address.bytes)
  })
}

/** Returns each text once, in order of code units: the same on every machine. */
export function sortUnique(texts: readonly string[]): string[] {
  return [...new Set(texts)].sort()
}

function sortUniqueBy<T>(items: readonly T[], textOf: (item: T) => string): readonly T[] {
  if (items.length < 2) return items
  const byText = new Map(items.map((item) => [textOf(item), item]))
  return [...byText.keys()].sort().map((text) => byText.get(text)!)
}

/**
 * Returns `after` with the times of `before` for unchanged endpoints, and `nowSeconds` for changed
 * ones. So exported data changes only with content and health.
 */
export function carrySince(
  before: readonly PeerEndpoint[],
  after: readonly PeerEndpoint[],
  nowSeconds: number,
): PeerEndpoint[] {
  const known = new Map(before.map((e) => [timelessKey(e), e.sinceSeconds]))
  return after.map((e) => ({ ...e, sinceSeconds: known.get(timelessKey(e)) ?? nowSeconds }))
}

/**
 * Returns `after`; an unchanged endpoint gets the later one of both times. After a restart, a site
 * may know only the creation time of its record.
 */
export function keepLaterSince(
  before: readonly PeerEndpoint[],
  after: readonly PeerEndpoint[],
): readonly PeerEndpoint[] {
  const latest = before.reduce((since, e) => Math.max(since, e.sinceSeconds), 0)
  if (after.every((e) => e.sinceSeconds >= latest)) return after
  const known = new Map(before.map((e) => [timelessKey(e), e.sinceSeconds]))
  return after.map((e) => {
    const sinceSeconds = Math.max(e.sinceSeconds, known.get(timelessKey(e)) ?? 0)
    return { ...e, sinceSeconds }
  })
}

/** Without the place of the probes, which an operator's `status.peers` does not store. */
function timelessKey(one: PeerEndpoint): string {
  const endpoint = { ...one.endpoint, probeAt: undefined }
  return peerEndpointKey({ ...one, endpoint, sinceSeconds: 0 })
}
