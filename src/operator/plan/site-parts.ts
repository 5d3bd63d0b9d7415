import type { EndpointDrain } from '../../health/drain/drain.ts'
import type { ApiObject } from '../../kube/api.ts'
import { groupBy } from '../../peering/merge/part.ts'
import { listTargets, type PeerEndpoint } from '../../peering/peer-endpoint.ts'
import { printProbed, toPeerEndpoints } from '../../peering/to-peer-endpoint.ts'
import { printHost } from '../../records/print-endpoint.ts'
import { recordId } from '../../records/record-source.ts'
import type { RecordSettings } from '../../records/settings.ts'
import type { SitePart } from '../../records/site-facts.ts'
import { printSettings } from '../../records/validate/settings.ts'
import { printSpecEndpoint } from '../record/endpoint-text.ts'
import type { Publishing } from './decide.ts'
import type { OwnHealth } from './own.ts'

/** What this site has of a host, and what its peers report. */
interface PartSources {
  readonly site: string
  readonly health: OwnHealth
  /** True = the clock of our API server is wrong. */
  readonly isUndated: boolean
  /** Takes the own record out of service; undefined = nothing does. */
  readonly drain: EndpointDrain | undefined
  readonly reported: readonly PeerEndpoint[]
  /** True if a nameserver never reported its endpoints. */
  readonly isPartial: boolean
  /** Why addresses of peers are down. */
  readonly down: ReadonlyMap<string, string>
}

/** What each record of each site contributes to the record of all sites: our own first, the others in order. */
export function composeSiteParts(
  publishing: Publishing,
  { site, health, isUndated, drain, reported, isPartial, down }: PartSources,
): SitePart<ApiObject>[] {
  const { content, record } = publishing
  const about = { site, key: record.key, sinceSeconds: content.createdSeconds }
  const own: SitePart<ApiObject> = {
    ...ownPart(publishing, { site, health, isUndated, drain }),
    // Only failover lists name endpoints of other sites, so other records need no second write.
    isPartial: isPartial && content.settings?.failover !== undefined,
    endpoints: toPeerEndpoints(content, { ...about, down: [], up: [] }).map(printSpecEndpoint),
  }
  return [own, ...composeReported(reported, joinDown(down, health))]
}

/** The part of a record of this site, without its endpoints. */
export function ownPart(
  { record, content }: Pick<Publishing, 'record' | 'content'>,
  { site, health, isUndated, drain }: Omit<PartSources, 'reported' | 'isPartial' | 'down'>,
): Omit<SitePart<ApiObject>, 'endpoints'> {
  return {
    site,
    id: recordId(record.key),
    name: record.name,
    createdSeconds: content.createdSeconds,
    isUndated,
    settings: textsOf(withDrain(content.settings, drain)),
    down: downOf(health),
  }
}

/** `drain`: in force; it may be that of a passive cluster. The server itself ends a drain at its time. */
function withDrain(
  settings: RecordSettings | undefined,
  drain: EndpointDrain | undefined,
): RecordSettings | undefined {
  if (drain === undefined) return settings
  const { reason, untilMs } = drain
  return { ...settings, drain: untilMs === undefined ? { reason } : { reason, untilMs } }
}

function textsOf(settings: RecordSettings | undefined): Record<string, string> {
  return settings === undefined ? {} : Object.fromEntries(printSettings(settings))
}

/** The addresses that are down, with the reasons. */
export function downOf({ down, probes }: OwnHealth): Record<string, string> {
  const reasons = new Map(probes.map(({ address, reason = '' }) => [address, reason]))
  return Object.fromEntries(down.map((address) => [address, reasons.get(address) ?? '']))
}

function composeReported(
  reported: readonly PeerEndpoint[],
  reasons: ReadonlyMap<string, string>,
): SitePart<ApiObject>[] {
  const names = new Set(reported.map(({ endpoint }) => printHost(endpoint.owner)))
  // The drain of an endpoint is among its settings, so endpoints of one record can differ in them.
  const keyOf = (endpoint: PeerEndpoint): string => {
    const { site, recordId: id = '', createdSeconds = 0, settings } = endpoint
    const isDrained = settings?.drain !== undefined
    return JSON.stringify([site, createdSeconds, id, isDrained, textsOf(settings)])
  }
  const groups = [...groupBy(reported, keyOf)].sort(([a], [b]) => (a < b ? -1 : 1))
  return groups.map(([, endpoints]) => {
    const { site, recordId: id = '', createdSeconds = 0, settings } = endpoints[0]!
    // The server finds whether a name of the host is down from what it has there.
    const targets = listTargets(endpoints).filter((one) => !names.has(one))
    const down = [...new Set(targets)].filter((address) => reasons.has(address))
    return {
      site,
      id,
      name: '',
      createdSeconds,
      isUndated: endpoints.some((one) => one.isUndated === true),
      settings: textsOf(settings),
      endpoints: endpoints.map(printSpecEndpoint).sort(byText),
      down: Object.fromEntries(down.map((address) => [address, reasons.get(address) ?? ''])),
    }
  })
}

/** Our own probes decide whether an address of ours is down, also if a peer has it, too. */
function joinDown(
  reasons: ReadonlyMap<string, string>,
  { down }: OwnHealth,
): ReadonlyMap<string, string> {
  const ours = printProbed(down).map((address) => [address, ''] as const)
  return new Map([...ours, ...reasons])
}

function byText(a: ApiObject, b: ApiObject): number {
  const [textA, textB] = [JSON.stringify(a), JSON.stringify(b)]
  if (textA === textB) return 0
  return textA < textB ? -1 : 1
}
