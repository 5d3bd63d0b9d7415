import { type ApiObject, isObject, type JsonValue, textOf } from '../kube/api.ts'
import type { Generation, SharedEndpoint, SiteShare } from '../peering/shared-endpoint.ts'
import { DEFAULT_SET_IDENTIFIER } from '../record/print-endpoint.ts'
import { printTime } from './conditions.ts'
import { printShared } from './endpoint-text.ts'
import { itemsOf } from './object.ts'
import type { Peer } from './peers.ts'
import type { Remembered } from './share-book.ts'

/**
 * `status.peers[]`: what each peer last said of a record. Beside being there to read, it is what the operator
 * remembers over a restart. Nothing in it changes by itself: while a peer is heard it has no time of day.
 *
 * `address`, `site`, `generation` (v1 or v2), `state` (Live, Silent or Unknown: never heard), and of a peer that isn't
 * live `lastSeenTime`, `serial` (of its zone, then) and `message` (why); `endpoints`: as in `spec`, with `health` and
 * `since` among `providerSpecific`.
 */
export function printPeers(
  peers: readonly Peer[],
  remembered: ReadonlyMap<string, Remembered>,
): readonly ApiObject[] {
  return peers.flatMap((peer) => {
    const page = remembered.get(peer.address)
    if (page === undefined) return []
    const shares = page.shares.length === 0 ? [undefined] : page.shares
    return shares.map((share) => printPeer(peer, page, share))
  })
}

function printPeer(peer: Peer, page: Remembered, share: SiteShare | undefined): ApiObject {
  const { seenMs, reason } = page
  const state = reason === '' ? 'Live' : seenMs === undefined ? 'Unknown' : 'Silent'
  const site = share?.site ?? peer.site
  const generation = share?.generation ?? peer.generation
  return {
    address: peer.address,
    state,
    ...(site === '' ? {} : { site }),
    ...(generation === '' ? {} : { generation }),
    ...(reason === '' || seenMs === undefined ? {} : { lastSeenTime: printTime(seenMs) }),
    ...(reason === '' || peer.serial === undefined ? {} : { serial: peer.serial }),
    ...(reason === '' ? {} : { message: reason }),
    endpoints: (share?.endpoints ?? []).map((endpoint) => printRemembered(endpoint, generation)),
  }
}

function printRemembered(endpoint: SharedEndpoint, generation: Generation | ''): ApiObject {
  const printed = printShared(endpoint)
  const { health, sinceSeconds } = endpoint
  const kept = itemsOf(printed, 'providerSpecific')
  const said: ApiObject[] = health === 'unknown' ? [] : [{ name: 'health', value: health }]
  // A peer of the first generation doesn't say since when, so that it would be since we asked.
  if (generation === 'v2') said.push({ name: 'since', value: String(sinceSeconds) })
  const providerSpecific = [...kept, ...said]
  return providerSpecific.length === 0 ? printed : { ...printed, providerSpecific }
}

/**
 * Reads what `printPeers` wrote, by address. A peer that was live then was seen last at `startMs`, so far as anybody
 * knows. What makes no sense is passed over.
 */
export function scanPeers(
  peers: JsonValue | undefined,
  rootHost: string,
  startMs: number,
): ReadonlyMap<string, Remembered> {
  const found = new Map<string, Remembered>()
  for (const peer of Array.isArray(peers) ? peers.filter(isObject) : []) {
    const address = textOf(peer, 'address')
    const state = textOf(peer, 'state')
    const saidMs = state === 'Live' ? startMs : Date.parse(textOf(peer, 'lastSeenTime'))
    const seenMs = Number.isNaN(saidMs) ? undefined : saidMs
    if (address === '') continue
    const known = found.get(address)?.shares ?? []
    const share = seenMs === undefined ? undefined : scanShare(peer, rootHost, seenMs)
    const shares = share === undefined ? known : [...known, share]
    found.set(address, { shares, seenMs, reason: textOf(peer, 'message') })
  }
  return found
}

function scanShare(peer: ApiObject, rootHost: string, seenMs: number): SiteShare | undefined {
  const site = textOf(peer, 'site')
  const generation: Generation = textOf(peer, 'generation') === 'v2' ? 'v2' : 'v1'
  const endpoints = itemsOf(peer, 'endpoints')
    .map((endpoint) => scanPrinted(endpoint, site, rootHost))
    .filter((endpoint) => endpoint !== undefined)
  if (site === '') return undefined
  return { site, rootHost, endpoints, seenMs, generation }
}

/** Reads an endpoint as `printShared` writes it, or `printPeers`; undefined where it has no targets. */
export function scanPrinted(
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
