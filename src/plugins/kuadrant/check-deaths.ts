import { systemClock } from '../../base/clock.ts'
import { InputError } from '../../base/errors.ts'
import { readStateFile } from '../../base/persist/state-file.ts'
import { SILENT_LOG } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import { AddressHealth } from '../../health/address-health.ts'
import { cachedPeers } from '../../peering/cache/peer-cache-text.ts'
import { DeathList } from '../../peering/deaths/death-list.ts'
import {
  adviseFaster,
  type DeathRules,
  type HostOfSites,
  ifSiteDies,
  ProbeRoom,
  removalMs,
  type SiteDeath,
} from '../../peering/deaths/if-site-dies.ts'
import { printSpan } from '../../peering/deaths/span.ts'
import { LocalExporter } from '../../peering/local-exporter.ts'
import { rootHostOf } from '../../peering/merged-keys.ts'
import { MergedSource } from '../../peering/merged-source.ts'
import { PeerFollower } from '../../peering/peer.ts'
import { bareHost, wasHeard } from '../../peering/peer-status.ts'
import { HealthQuorum } from '../../peering/quorum/health-quorum.ts'
import { QuorumMemory } from '../../peering/quorum/quorum-memory.ts'
import type { CheckReport } from '../../plugin/description.ts'
import type { CheckedManifests } from '../../publish/offline/check-manifests.ts'
import type { PublishOptions } from '../../publish/options.ts'
import { deathRulesOf } from '../../publish/peers/death-rules.ts'
import { readPeerKey } from '../../publish/peers/peer-key.ts'
import { serversOf } from '../../publish/zone/zone-content.ts'
import { isChecked } from '../../records/pack.ts'
import { printHost } from '../../records/print-endpoint.ts'
import type { RecordSource, StoredRecord } from '../../records/record-source.ts'

/** Lines, and warnings, of one block. */
const LISTED_MAX = 20

/** Nothing runs later, so that nothing is sent. */
const NO_TIMERS: Timers = { every: () => () => {}, after: () => () => {} }

/** Our records in the zones of a block, and where they are. */
type Found = Pick<CheckedManifests, 'records' | 'places'>

/**
 * Reports what happens when each site dies: our own site, and those in the peer cache. Warns of hosts of several sites
 * whose addresses would be kept for want of a health check, or removed late. `all`: the blocks of the Corefile.
 */
export async function foreseeDeaths(
  options: PublishOptions,
  all: readonly PublishOptions[],
  found: Found,
  { warn, foresee }: Pick<CheckReport, 'warn' | 'foresee'>,
): Promise<void> {
  if (options.peering.peers.length === 0) return
  const { merged, sites, knowsOthers } = await mergeOffline(options, found.records)
  const room = new ProbeRoom()
  const rules = { ...deathRulesOf(options, all), sites, knowsOthers, room }
  const list = new DeathList()
  const warnings: InputError[] = []
  let warned = 0
  const records = new Map<string, StoredRecord>()
  for (const record of found.records) noteFirst(records, record)
  for (const host of merged.hostsOfSites()) {
    const deaths = ifSiteDies(host, rules)
    for (const death of deaths) list.add(death)
    const text = knowsOthers ? warningOf(host, deaths, rules) : ''
    const record = records.get(host.host)
    if (text === '' || record === undefined || ++warned > LISTED_MAX) continue
    warnings.push(
      new InputError(found.places.record(record.key), `DNSRecord ${record.key}: ${text}`),
    )
  }
  merged.close()
  const lines = list.lines()
  for (const { site, text } of lines.slice(0, LISTED_MAX)) foresee(`if ${site} dies: ${text}`)
  const more = Math.max(0, lines.length - LISTED_MAX) + list.more
  if (more > 0) foresee(`and ${more} more lines about the death of sites`)
  if (room.text !== '') warnings.push(new InputError(options.position, room.text))
  for (const warning of warnings) warn(warning)
  if (warned <= LISTED_MAX) return
  const text = `and ${warned - LISTED_MAX} more hosts without a fast health check`
  warn(new InputError(options.position, text))
}

/** Keeps the record of each host whose health check holds for it, or else the first one by key. */
function noteFirst(records: Map<string, StoredRecord>, record: StoredRecord): void {
  const host = bareHost(rootHostOf(record))
  const known = records.get(host)
  const rankOf = ({ packed, key }: StoredRecord): string => `${isChecked(packed) ? 0 : 1} ${key}`
  if (known === undefined || rankOf(record) < rankOf(known)) records.set(host, record)
}

/** Returns what is to be changed at a host; '' = nothing. */
function warningOf(
  { host, check }: HostOfSites,
  deaths: readonly SiteDeath[],
  rules: DeathRules,
): string {
  if (check === undefined) {
    if (!deaths.some(({ kind }) => kind === 'unchecked')) return ''
    const span = printSpan(rules.silentMs)
    return `no health check: if a site dies, its addresses of ${host} are kept for ${span}; set spec.healthCheck`
  }
  if (!deaths.some(({ kind }) => kind === 'slow')) return ''
  const span = printSpan(removalMs(check, rules))
  return `if a site dies, its addresses of ${host} are removed only after up to ${span}; ${adviseFaster(check, rules)}`
}

/** Merges our records with those in the peer cache, as the server does at its start. Sends nothing. */
async function mergeOffline(
  options: PublishOptions,
  records: readonly StoredRecord[],
): Promise<{
  readonly merged: MergedSource
  readonly sites: number
  readonly knowsOthers: boolean
}> {
  const { site, peering, zones } = options
  const peers = recallPeers(options)
  const clock = systemClock
  const env = { clock, timers: NO_TIMERS, log: SILENT_LOG }
  const quorum = new HealthQuorum({
    site,
    peers,
    quorum: peering.probePeers?.quorum ?? 0,
    holdDownMs: peering.probePeers?.holdDownMs ?? 0,
    memory: new QuorumMemory(clock),
    observer: undefined,
    ...env,
  })
  const merged = new MergedSource({
    zones: zones.map(printHost),
    servers: zones.flatMap((apex) => serversOf(apex, options)).map(printHost),
    rulesOf: (address) => peering.rules.get(address) ?? [],
    own: sourceOf(records),
    health: new AddressHealth(),
    allows: () => true,
    site,
    exporter: new LocalExporter(site, clock),
    peers,
    expiryMs: peering.expiryMs,
    quorum,
    ...env,
  })
  await merged.ready()
  const knowsOthers = peers.some(({ lastSeenMs }) => wasHeard(lastSeenMs))
  return { merged, sites: quorum.status.sites, knowsOthers }
}

/** Returns the peers with what the peer cache has of them. They are never queried. */
function recallPeers({ site, peering }: PublishOptions): readonly PeerFollower[] {
  const { peers, key: place, peerCache } = peering
  const key = place === undefined ? undefined : keyAt(place)
  // Without its key, the cached data of a peer is not used.
  const isReadable = peerCache !== undefined && (place === undefined || key !== undefined)
  const kind = cachedPeers(site, systemClock)
  const cached = isReadable ? readStateFile(peerCache.path, kind)?.peers : undefined
  const env = { clock: systemClock, timers: NO_TIMERS, log: SILENT_LOG, random: () => 0 }
  return peers.map((peer) => {
    const follower = new PeerFollower({ peer, key, ...env })
    const known = cached?.get(follower.identity)
    if (known !== undefined) follower.recall(known)
    return follower
  })
}

/** Returns undefined for an invalid key, which the check of the key reports. */
function keyAt(
  place: NonNullable<PublishOptions['peering']['key']>,
): ReturnType<typeof readPeerKey>['key'] | undefined {
  try {
    return readPeerKey(place).key
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    return undefined
  }
}

function sourceOf(records: readonly StoredRecord[]): RecordSource {
  const byKey = new Map(records.map((record) => [record.key, record]))
  return {
    records: () => records,
    find: (key) => byKey.get(key),
    recordCount: records.length,
    problems: () => [],
    unreadyReason: () => '',
    subscribe: () => () => {},
  }
}
