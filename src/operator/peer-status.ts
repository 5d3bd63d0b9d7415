import type { Clock } from '../base/clock.ts'
import { recallMoment, thisMoment } from '../base/moment.ts'
import { type ApiObject, isObject, type JsonValue, textOf } from '../kube/api.ts'
import { cutToFit } from '../peering/merge/cut-to-fit.ts'
import type { Generation, SharedEndpoint, SiteShare } from '../peering/shared-endpoint.ts'
import { DEFAULT_SET_IDENTIFIER } from '../record/print-endpoint.ts'
import { printTime } from './conditions.ts'
import { printSpecEndpoint } from './endpoint-text.ts'
import { itemsOf } from './object.ts'
import type { PeerWord } from './peers.ts'
import type { Remembered } from './share-book.ts'

/**
 * `status.peers[]`: what each peer last said of a record. Beside being there to read, it is what the operator
 * remembers over a restart. Nothing in it changes by itself: while a peer is heard it has no time of day.
 *
 * `address`; `state` (Live, Silent or Unknown: never heard); `generation` (v1 or v2); `site`, one item for each that has
 * endpoints; of a peer that isn't live `lastSeenTime`, `serial` (of its zone, then) and `message` (why); `endpoints`: as
 * in `spec`, with `health` and `since` among `providerSpecific`. `roomOctets`: that all endpoints may have; of what is
 * more those are left out that a merge leaves out first.
 */
export function printPeers(
  addresses: readonly string[],
  remembered: ReadonlyMap<string, Remembered>,
  roomOctets: number,
): readonly ApiObject[] {
  const sharesOf = (page: Remembered | undefined) =>
    (page?.word?.shares ?? []).filter((share) => share.endpoints.length > 0)
  const all = addresses.flatMap((address) => sharesOf(remembered.get(address)))
  const kept = keepFitting(all, roomOctets)
  return addresses.flatMap((address) => {
    const page = remembered.get(address)
    if (page === undefined) return []
    const shares = sharesOf(page)
    if (shares.length === 0) return [printPeer(address, page, undefined)]
    return shares.map((share) => printPeer(address, page, kept.get(share) ?? share))
  })
}

/** The shares that have to be cut, as far as there is room for them. */
function keepFitting(
  shares: readonly SiteShare[],
  octets: number,
): ReadonlyMap<SiteShare, SiteShare> {
  const parts = shares.flatMap(({ endpoints, generation, teller }) =>
    endpoints.map((endpoint) => ({ endpoint, generation, teller, isExpired: false })),
  )
  const fitting = cutToFit(parts, { endpoints: parts.length, octets })
  if (fitting.leftOut.length === 0) return new Map()
  const fits = new Set(fitting.parts.map((part) => part.endpoint))
  return new Map(
    shares.map((share) => {
      return [share, { ...share, endpoints: share.endpoints.filter((one) => fits.has(one)) }]
    }),
  )
}

function printPeer(address: string, page: Remembered, share: SiteShare | undefined): ApiObject {
  const { word, reason } = page
  const state = reason === '' ? 'Live' : word === undefined ? 'Unknown' : 'Silent'
  const isSilent = reason !== ''
  return {
    address,
    state,
    ...(word === undefined ? {} : { generation: share?.generation ?? word.generation }),
    ...(share === undefined ? {} : { site: share.site }),
    ...(isSilent && word !== undefined ? { lastSeenTime: printTime(word.seenTimeMs) } : {}),
    ...(isSilent && word?.serial !== undefined ? { serial: word.serial } : {}),
    ...(isSilent ? { message: reason } : {}),
    endpoints: (share?.endpoints ?? []).map((one) => printTold(one, share!.generation)),
  }
}

function printTold(endpoint: SharedEndpoint, generation: Generation): ApiObject {
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
): ReadonlyMap<string, Remembered> {
  const found = new Map<string, Remembered>()
  for (const peer of Array.isArray(peers) ? peers.filter(isObject) : []) {
    const address = textOf(peer, 'address')
    if (address === '') continue
    const word = scanWord(peer, rootHost, clock)
    const shares = [...(found.get(address)?.word?.shares ?? []), ...(word?.shares ?? [])]
    // Who tells of several sites is a nameserver of none of them: see `SiteShare`.
    const isOwn = shares.length === 1
    const all = word && { ...word, shares: shares.map((share) => ({ ...share, isOwn })) }
    found.set(address, { word: all, reason: textOf(peer, 'message') })
  }
  return found
}

function scanWord(peer: ApiObject, rootHost: string, clock: Clock): PeerWord | undefined {
  const isLive = textOf(peer, 'state') === 'Live'
  const timeMs = Date.parse(textOf(peer, 'lastSeenTime'))
  if (!isLive && Number.isNaN(timeMs)) return undefined
  const moment = isLive ? thisMoment(clock) : recallMoment(timeMs, clock)
  const { seenMs } = moment
  const site = textOf(peer, 'site')
  const generation: Generation = textOf(peer, 'generation') === 'v1' ? 'v1' : 'v2'
  const endpoints = itemsOf(peer, 'endpoints')
    .map((endpoint) => scanTold(endpoint, site, rootHost))
    .filter((endpoint) => endpoint !== undefined)
  const about = { site, teller: textOf(peer, 'address'), isOwn: true, rootHost, seenMs, generation }
  const shares: SiteShare[] = site === '' ? [] : [{ ...about, endpoints }]
  const serial = typeof peer.serial === 'number' ? peer.serial : undefined
  return { shares, ...moment, generation, serial, problems: [] }
}

/** Reads an endpoint of a spec, or of `status.peers`; undefined where it has no targets. */
export function scanTold(
  endpoint: ApiObject,
  site: string,
  rootHost: string,
): SharedEndpoint | undefined {
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
