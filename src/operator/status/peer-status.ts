import type { Clock } from '../../base/clock.ts'
import { recallMoment, thisMoment } from '../../base/moment.ts'
import { printTime } from '../../base/rfc3339.ts'
import { type ApiObject, isObject, type JsonValue, textOf } from '../../kube/api.ts'
import { cutToFit } from '../../peering/merge/cut-to-fit.ts'
import { jsonOctets } from '../../peering/merge/endpoint-octets.ts'
import { groupBy } from '../../peering/merge/part.ts'
import type { Generation, PeerEndpoint, SiteState } from '../../peering/peer-endpoint.ts'
import { printRecordTexts, scanRecordTexts } from '../../peering/record-texts.ts'
import { toPeerEndpoint } from '../../peering/to-peer-endpoint.ts'
import { validateEndpoint } from '../../records/validate/dns-record.ts'
import type { KnownPeer } from '../peers/peer-state-store.ts'
import type { PeerState } from '../peers/peers.ts'
import { printSpecEndpoint } from '../record/endpoint-text.ts'
import { itemsOf } from '../record/fields.ts'

/**
 * How much of `status.peers` the installed definition has: all of it, all except `relayed`, which
 * was added later, or no such field.
 */
export type PeersForm = 'whole' | 'unmarked' | 'none'

interface PrintPeersParts {
  readonly form: 'whole' | 'unmarked'
  /**
   * Octets for all endpoints together. If they need more, those that a merge leaves out first are
   * left out.
   */
  readonly roomOctets: number
}

/**
 * `status.peers[]`: the last report of each peer on a record. It informs the reader, and the
 * operator restores its peer states from it after a restart. No value in it changes by itself: a
 * live peer has no time of day.
 *
 * `address`; `state` (Live, Silent, or Unknown: never heard); `generation` (v1 or v2); `site`, one
 * item for each site with endpoints, and one for the peer's own empty site if that matters;
 * `relayed`: the peer is not a nameserver of that site. If `relayed` is missing, a peer with one
 * item is a nameserver of that site, and a peer with several items of none; so most items do not
 * need it. A peer that is not live has `lastSeenTime`, `serial` (of its zone at that time) and
 * `message` (the reason). `endpoints`: as in `spec`, with `health`, `since` and the properties of the
 * endpoint's record (see `RecordKey`) in `providerSpecific`.
 */
export function printPeers(
  addresses: readonly string[],
  known: ReadonlyMap<string, KnownPeer>,
  { form, roomOctets }: PrintPeersParts,
): readonly ApiObject[] {
  const statesOf = (peer: KnownPeer | undefined) => peer?.state?.siteStates ?? []
  const all = addresses.flatMap((address) => statesOf(known.get(address)))
  const cut = cutToRoom(all, roomOctets)
  const reported = new Set(all.filter(hasEndpoints).map(({ site }) => site))
  return addresses.flatMap((address) => {
    const peer = known.get(address)
    if (peer === undefined) return []
    const siteStates = statesOf(peer).flatMap((siteState) => {
      if (!hasEndpoints(siteState)) return isNeeded(siteState, peer, reported) ? [siteState] : []
      return [cut.get(siteState) ?? siteState].filter(hasEndpoints)
    })
    if (siteStates.length === 0) return [printPeer(address, peer, undefined)]
    const isMarked = (siteState: SiteState): boolean =>
      form === 'whole' && siteState.isOwn !== isOwnUnmarked(siteStates.length)
    return siteStates.map((siteState) => {
      const printed = printPeer(address, peer, siteState)
      return isMarked(siteState) ? { ...printed, relayed: !siteState.isOwn } : printed
    })
  })
}

function hasEndpoints({ endpoints }: SiteState): boolean {
  return endpoints.length > 0
}

/**
 * True if a restarted operator must know that the peer's own site is empty: other peers report that
 * site, or may while the peer is silent. Doing this for all live peers would cause a write for each
 * record that they lack.
 */
function isNeeded(emptyState: SiteState, peer: KnownPeer, reported: ReadonlySet<string>): boolean {
  return emptyState.isOwn && (peer.reason !== '' || reported.has(emptyState.site))
}

/**
 * Whether a peer without `relayed` is a nameserver of the sites that it reports: see `SiteState`.
 */
function isOwnUnmarked(sites: number): boolean {
  return sites === 1
}

/** The site states that must be cut to fit into `octets`, each with its cut form. */
function cutToRoom(
  siteStates: readonly SiteState[],
  octets: number,
): ReadonlyMap<SiteState, SiteState> {
  const parts = siteStates.flatMap(({ endpoints, generation, exporter }) =>
    endpoints.map((endpoint) => ({ endpoint, generation, exporter })),
  )
  const fitting = cutToFit(parts, { endpoints: parts.length, octets }, recordOctets)
  if (fitting.leftOut.length === 0) return new Map()
  const fits = new Set(fitting.parts.map((part) => part.endpoint))
  return new Map(
    siteStates.map((siteState) => {
      const endpoints = siteState.endpoints.filter((one) => fits.has(one))
      return [siteState, { ...siteState, endpoints }]
    }),
  )
}

function printPeer(
  address: string,
  { state, reason }: KnownPeer,
  siteState: SiteState | undefined,
): ApiObject {
  const endpoints = siteState?.endpoints ?? []
  return {
    address,
    state: presenceOf(state, reason),
    ...(state === undefined ? {} : { generation: siteState?.generation ?? state.generation }),
    ...(siteState === undefined ? {} : { site: siteState.site }),
    ...(reason === '' ? {} : { ...printLastSeen(state), message: reason }),
    endpoints: endpoints.map((one) => printExported(one, siteState!.generation)),
  }
}

function presenceOf(state: PeerState | undefined, reason: string): string {
  if (reason === '') return 'Live'
  return state === undefined ? 'Unknown' : 'Silent'
}

/** When a silent peer was last seen, and the serial of its zone then. */
function printLastSeen(state: PeerState | undefined): ApiObject {
  if (state === undefined) return {}
  const { seenTimeMs, serial } = state
  const lastSeenTime = printTime(seenTimeMs)
  return serial === undefined ? { lastSeenTime } : { lastSeenTime, serial }
}

function printExported(endpoint: PeerEndpoint, generation: Generation): ApiObject {
  const printed = printSpecEndpoint(endpoint)
  const { health, sinceSeconds } = endpoint
  const steering = itemsOf(printed, 'providerSpecific')
  const report: ApiObject[] = health === 'unknown' ? [] : [{ name: 'health', value: health }]
  // A v1 peer does not report when an endpoint changed: its time would be that of the query.
  if (generation === 'v2') report.push({ name: 'since', value: String(sinceSeconds) })
  report.push(...printRecordProperties(endpoint))
  const providerSpecific = [...steering, ...report]
  return providerSpecific.length === 0 ? printed : { ...printed, providerSpecific }
}

function printRecordProperties(endpoint: PeerEndpoint): ApiObject[] {
  return printRecordTexts(endpoint).map(([name, value]) => ({ name, value }))
}

/** Returns the octets that the properties of an endpoint's record add to the endpoint, at least. */
function recordOctets(endpoint: PeerEndpoint): number {
  return jsonOctets(printRecordProperties(endpoint))
}

/**
 * Parses what `printPeers` wrote, by address. A peer that was live then is assumed to have been
 * seen just now. Invalid items are ignored, and invalid endpoints are problems of the state.
 */
export function scanPeers(
  peers: JsonValue | undefined,
  rootHost: string,
  clock: Clock,
): ReadonlyMap<string, KnownPeer> {
  const found = new Map<string, KnownPeer>()
  const objects = Array.isArray(peers) ? peers.filter(isObject) : []
  for (const [address, items] of groupBy(objects, (peer) => textOf(peer, 'address'))) {
    if (address === '') continue
    const isOwn = isOwnUnmarked(items.filter((item) => textOf(item, 'site') !== '').length)
    const states = items.map((item) => scanPeerState(item, { rootHost, isOwn }, clock))
    const last = states.at(-1)
    const siteStates = states.flatMap((state) => state?.siteStates ?? [])
    const problems = states.flatMap((state) => state?.problems ?? [])
    const reason = textOf(items.at(-1)!, 'message')
    found.set(address, { state: last && { ...last, siteStates, problems }, reason })
  }
  return found
}

/** `isOwn`: the value if the item does not set it. */
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
  const exported = itemsOf(peer, 'endpoints')
  const { endpoints, problems } = scanExported(exported, { site, rootHost, where: 'status.peers' })
  const isMarked = typeof peer.relayed === 'boolean'
  const source = {
    site,
    exporter: textOf(peer, 'address'),
    isOwn: isMarked ? !peer.relayed : isOwn,
  }
  const siteStates: SiteState[] =
    site === '' ? [] : [{ ...source, rootHost, endpoints, seenMs, generation }]
  const serial = typeof peer.serial === 'number' ? peer.serial : undefined
  return { siteStates, ...moment, generation, serial, problems }
}

interface ExportedPlace extends Pick<PeerEndpoint, 'site' | 'rootHost'> {
  /** What has the endpoints, for the problem. */
  readonly where: string
}

/**
 * Validates endpoints of a spec or of `status.peers`. `problems`: at most one line, with the number of those that are
 * not valid and the reason of the first.
 */
export function scanExported(
  objects: readonly ApiObject[],
  { where, ...place }: ExportedPlace,
): Pick<PeerState, 'problems'> & Pick<SiteState, 'endpoints'> {
  const scanned = objects.map((object) => scanEndpoint(object, place))
  const endpoints = scanned.filter((one) => typeof one !== 'string')
  const [first, ...more] = scanned.filter((one) => typeof one === 'string')
  if (first === undefined) return { endpoints, problems: [] }
  const others = more.length === 0 ? '' : `, and ${more.length} more`
  return {
    endpoints,
    problems: [`ignoring in ${where}: endpoint of site ${place.site}: ${first}${others}`],
  }
}

/** Returns what is wrong with an endpoint that is not valid. */
function scanEndpoint(
  object: ApiObject,
  { site, rootHost }: Pick<PeerEndpoint, 'site' | 'rootHost'>,
): PeerEndpoint | string {
  const checked = validateEndpoint(object, rootHost)
  if ('problem' in checked) return checked.problem.message
  const properties = itemsOf(object, 'providerSpecific')
  const textNamed = (name: string): string | undefined => {
    const property = properties.find((one) => one.name === name)
    return property && textOf(property, 'value')
  }
  const health = textNamed('health')
  return toPeerEndpoint(checked.endpoint, {
    site,
    rootHost,
    health: health === 'up' || health === 'down' ? health : 'unknown',
    sinceSeconds: Number(textNamed('since') ?? 0),
    ...scanRecordTexts(textNamed),
  })
}
