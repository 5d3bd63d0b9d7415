import type { Clock } from '../base/clock.ts'
import { recallMoment, thisMoment } from '../base/moment.ts'
import { type ApiObject, isObject, type JsonValue, textOf } from '../kube/api.ts'
import { cutToFit } from '../peering/merge/cut-to-fit.ts'
import { groupBy } from '../peering/merge/part.ts'
import type { Generation, PeerEndpoint, SiteState } from '../peering/peer-endpoint.ts'
import { DEFAULT_SET_IDENTIFIER } from '../record/print-endpoint.ts'
import { printTime } from './conditions.ts'
import { printSpecEndpoint } from './endpoint-text.ts'
import { itemsOf } from './object.ts'
import type { KnownPeers } from './peer-state-store.ts'
import type { PeerState } from './peers.ts'

/**
 * What of `status.peers` the installed definition has: all of it, all but `relayed`, which came later, or no such
 * field.
 */
export type PeersForm = 'whole' | 'unmarked' | 'none'

export interface PrintPeersParts {
  readonly form: 'whole' | 'unmarked'
  /** That all endpoints may have; of what is more those are left out that a merge leaves out first. */
  readonly roomOctets: number
}

/**
 * `status.peers[]`: what each peer last said of a record. Beside being there to read, it is what the operator
 * remembers over a restart. Nothing in it changes by itself: while a peer is heard it has no time of day.
 *
 * `address`; `state` (Live, Silent or Unknown: never heard); `generation` (v1 or v2); `site`, one item for each that has
 * endpoints, and the peer's own one where it matters that it has none; `relayed`: the peer is no nameserver of that site.
 * Without it the peer is one where it has one item, and none where it has several; so most have no need of it. Of a peer
 * that isn't live `lastSeenTime`, `serial` (of its zone, then) and `message` (why); `endpoints`: as in `spec`, with
 * `health` and `since` among `providerSpecific`.
 */
export function printPeers(
  addresses: readonly string[],
  known: ReadonlyMap<string, KnownPeers>,
  { form, roomOctets }: PrintPeersParts,
): readonly ApiObject[] {
  const sharesOf = (page: KnownPeers | undefined) => page?.word?.siteStates ?? []
  const all = addresses.flatMap((address) => sharesOf(known.get(address)))
  const kept = keepFitting(all, roomOctets)
  const relayed = new Set(all.filter(hasEndpoints).map(({ site }) => site))
  return addresses.flatMap((address) => {
    const page = known.get(address)
    if (page === undefined) return []
    const siteStates = sharesOf(page).flatMap((siteState) => {
      if (!hasEndpoints(siteState)) return saysNone(siteState, page, relayed) ? [siteState] : []
      return [kept.get(siteState) ?? siteState].filter(hasEndpoints)
    })
    if (siteStates.length === 0) return [printPeer(address, page, undefined)]
    const isMarked = (siteState: SiteState): boolean =>
      form === 'whole' && siteState.isOwn !== isOwnUnmarked(siteStates.length)
    return siteStates.map((siteState) => {
      const printed = printPeer(address, page, siteState)
      return isMarked(siteState) ? { ...printed, relayed: !siteState.isOwn } : printed
    })
  })
}

function hasEndpoints({ endpoints }: SiteState): boolean {
  return endpoints.length > 0
}

/**
 * True where it counts after a restart that the peer's own site has nothing: others tell of that site, or may while the
 * peer is silent. Of all live peers it would cost a write for each record that they don't have.
 */
function saysNone(siteState: SiteState, page: KnownPeers, relayed: ReadonlySet<string>): boolean {
  return siteState.isOwn && (page.reason !== '' || relayed.has(siteState.site))
}

/** Whether a peer of which nothing else is said is a nameserver of the sites that it tells of: see `SiteState`. */
function isOwnUnmarked(sites: number): boolean {
  return sites === 1
}

/** The shares that have to be cut, as far as there is room for them. */
function keepFitting(
  siteStates: readonly SiteState[],
  octets: number,
): ReadonlyMap<SiteState, SiteState> {
  const parts = siteStates.flatMap(({ endpoints, generation, exporter }) =>
    endpoints.map((endpoint) => ({ endpoint, generation, exporter: exporter, isExpired: false })),
  )
  const fitting = cutToFit(parts, { endpoints: parts.length, octets })
  if (fitting.leftOut.length === 0) return new Map()
  const fits = new Set(fitting.parts.map((part) => part.endpoint))
  return new Map(
    siteStates.map((siteState) => {
      return [
        siteState,
        { ...siteState, endpoints: siteState.endpoints.filter((one) => fits.has(one)) },
      ]
    }),
  )
}

function printPeer(address: string, page: KnownPeers, siteState: SiteState | undefined): ApiObject {
  const { word, reason } = page
  const state = reason === '' ? 'Live' : word === undefined ? 'Unknown' : 'Silent'
  const isSilent = reason !== ''
  return {
    address,
    state,
    ...(word === undefined ? {} : { generation: siteState?.generation ?? word.generation }),
    ...(siteState === undefined ? {} : { site: siteState.site }),
    ...(isSilent && word !== undefined ? { lastSeenTime: printTime(word.seenTimeMs) } : {}),
    ...(isSilent && word?.serial !== undefined ? { serial: word.serial } : {}),
    ...(isSilent ? { message: reason } : {}),
    endpoints: (siteState?.endpoints ?? []).map((one) => printExported(one, siteState!.generation)),
  }
}

function printExported(endpoint: PeerEndpoint, generation: Generation): ApiObject {
  const printed = printSpecEndpoint(endpoint)
  const { health, sinceSeconds } = endpoint
  const kept = itemsOf(printed, 'providerSpecific')
  const said: ApiObject[] = health === 'unknown' ? [] : [{ name: 'health', value: health }]
  // A peer of the first generation doesn't say since when: it would be since it was asked.
  if (generation === 'v2') said.push({ name: 'since', value: String(sinceSeconds) })
  const providerSpecific = [...kept, ...said]
  return providerSpecific.length === 0 ? printed : { ...printed, providerSpecific }
}

/**
 * Reads what `printPeers` wrote, by address. A peer that was live then was seen last just now, so far as anybody
 * knows. What makes no sense is passed over.
 */
export function scanPeers(
  peers: JsonValue | undefined,
  rootHost: string,
  clock: Clock,
): ReadonlyMap<string, KnownPeers> {
  const found = new Map<string, KnownPeers>()
  const objects = Array.isArray(peers) ? peers.filter(isObject) : []
  for (const [address, items] of groupBy(objects, (peer) => textOf(peer, 'address'))) {
    if (address === '') continue
    const isOwn = isOwnUnmarked(items.filter((item) => textOf(item, 'site') !== '').length)
    const words = items.map((item) => scanPeerState(item, { rootHost, isOwn }, clock))
    const last = words.at(-1)
    const siteStates = words.flatMap((word) => word?.siteStates ?? [])
    const reason = textOf(items.at(-1)!, 'message')
    found.set(address, { word: last && { ...last, siteStates: siteStates }, reason })
  }
  return found
}

/** `isOwn`: what holds where the item doesn't say it. */
function scanPeerState(
  peer: ApiObject,
  { rootHost, isOwn }: Pick<SiteState, 'rootHost' | 'isOwn'>,
  clock: Clock,
): PeerState | undefined {
  const isLive = textOf(peer, 'state') === 'Live'
  const timeMs = Date.parse(textOf(peer, 'lastSeenTime'))
  if (!isLive && Number.isNaN(timeMs)) return undefined
  const moment = isLive ? thisMoment(clock) : recallMoment(timeMs, clock)
  const { seenMs } = moment
  const site = textOf(peer, 'site')
  const generation: Generation = textOf(peer, 'generation') === 'v1' ? 'v1' : 'v2'
  const endpoints = itemsOf(peer, 'endpoints')
    .map((endpoint) => scanExported(endpoint, site, rootHost))
    .filter((endpoint) => endpoint !== undefined)
  const isSaid = typeof peer.relayed === 'boolean'
  const from = { site, exporter: textOf(peer, 'address'), isOwn: isSaid ? !peer.relayed : isOwn }
  const siteStates: SiteState[] =
    site === '' ? [] : [{ ...from, rootHost, endpoints, seenMs, generation }]
  const serial = typeof peer.serial === 'number' ? peer.serial : undefined
  return { siteStates: siteStates, ...moment, generation, serial, problems: [] }
}

/** Reads an endpoint of a spec, or of `status.peers`; undefined where it has no targets. */
export function scanExported(
  endpoint: ApiObject,
  site: string,
  rootHost: string,
): PeerEndpoint | undefined {
  const { targets, recordTTL } = endpoint
  const texts = Array.isArray(targets) ? targets.filter((one) => typeof one === 'string') : []
  if (texts.length === 0) return undefined
  const valuesOf = (name: string): string[] =>
    itemsOf(endpoint, 'providerSpecific')
      .filter((one) => one.name === name)
      .map((one) => textOf(one, 'value'))
  const [weight] = valuesOf('weight')
  const [health] = valuesOf('health')
  const codes = valuesOf('geo-code').flatMap((list) => list.split(','))
  const setIdentifier = textOf(endpoint, 'setIdentifier')
  return {
    site,
    rootHost,
    dnsName: textOf(endpoint, 'dnsName'),
    recordType: textOf(endpoint, 'recordType'),
    ttlSeconds: typeof recordTTL === 'number' ? recordTTL : 0,
    setIdentifier,
    weight: weight === undefined ? undefined : Number(weight),
    geoCodes: codes.filter((code) => code !== '*'),
    isDefault:
      codes.includes('*') ||
      valuesOf('default').includes('true') ||
      (codes.length > 0 && setIdentifier === DEFAULT_SET_IDENTIFIER),
    targets: texts,
    health: health === 'up' || health === 'down' ? health : 'unknown',
    sinceSeconds: Number(valuesOf('since')[0] ?? 0),
  }
}
