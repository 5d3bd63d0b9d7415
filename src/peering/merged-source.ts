import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../base/clock.ts'
import type { InputError } from '../base/errors.ts'
import { SLICE_MS } from '../base/slices.ts'
import type { Timers } from '../base/timers.ts'
import { DERIVED_ENDPOINTS_MAX, type DnsRecord } from '../dnsrecord/dns-record.ts'
import { KDRNT } from '../dnsrecord/local-zone.ts'
import { packRecord, type RecordContent, unpackRecord } from '../dnsrecord/pack.ts'
import { printHost } from '../dnsrecord/print-endpoint.ts'
import { type RecordChange, type RecordSource, StoredRecord } from '../dnsrecord/record-source.ts'
import { firstSettings } from '../dnsrecord/settings.ts'
import type { AddressHealth } from '../health/address-health.ts'
import { type Guarded, guarding } from '../telemetry/guard.ts'
import type { Logger } from '../telemetry/log.ts'
import { HOST_MS } from './host-poll.ts'
import type { LocalExporter } from './local-exporter.ts'
import { dropDown } from './merge/health.ts'
import { mergeSiteStates, type OwnState } from './merge/merge-site-states.ts'
import { buildMergedRecord } from './merged-form.ts'
import { hostKeyOf, keyOfHost, mergedHostKeyOf, rootHostOf } from './merged-keys.ts'
import { MERGED_NAMESPACE } from './merged-namespace.ts'
import { printPartlyDrained } from './partly-drained.ts'
import type { PeerFollower } from './peer.ts'
import type { PeerEndpoint, SiteState } from './peer-endpoint.ts'
import { wasHeard } from './peer-status.ts'
import type { HealthQuorum } from './quorum/health-quorum.ts'
import { differences, RecordSet } from './record-set.ts'
import { type Silence, silenceAfter } from './silence.ts'
import { downTargets } from './to-peer-endpoint.ts'
import { type HostTroubles, NO_TROUBLES, textsOf } from './troubles.ts'
import { HostIndex, namesAbove } from './trust/host-index.ts'
import { OwnHosts } from './trust/own-hosts.ts'
import type { PeerRule } from './trust/peer-rule.ts'
import { type Refused, screenSiteStates } from './trust/screen-site-states.ts'

/** Interval of the checks whether a peer is silent for longer than the expiry time. */
const EXPIRY_CHECK_MS = 1000
/** Conflicts that are logged one by one per interval, and conflicts that are stored per host. */
const LOGGED_MAX = 20
const TROUBLES_MAX = 100

export interface MergedSourceParts {
  /** Our own records. */
  readonly own: RecordSource
  /** Health of the addresses of our own records. */
  readonly health: AddressHealth
  /** Selects the records that count. */
  readonly allows: (record: StoredRecord) => boolean
  readonly site: string
  readonly exporter: LocalExporter
  readonly peers: readonly PeerFollower[]
  /** Apexes of the zones that are served, and names of their name servers; lower case, without a final dot. */
  readonly zones?: readonly string[]
  readonly servers?: readonly string[]
  /** What a peer may report in addition to what every peer may. `address`: as in its status. */
  readonly rulesOf?: (address: string) => readonly PeerRule[]
  readonly expiryMs: number
  /** Decides about the health of peers' addresses; undefined = each site decides about its own. */
  readonly quorum?: HealthQuorum | undefined
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
}

/** Counts of what peers report and this site does not serve. */
export interface PeerDisputes {
  /** Disagreements with other sites that are settled here. */
  readonly conflicts: number
  /** Endpoints that were refused because the peer may not report them, by its address. */
  readonly refused: ReadonlyMap<string, number>
}

/** A host without its `*.`, as records of several sites have it. */
interface Host {
  readonly text: string
  /** Our own records of the host. Copied before a change if it is the same object as `given`. */
  own: RecordSet
  /** The records that the zones serve for the host: our own records, or one merged record. */
  given: RecordSet
}

/**
 * Our own records together with what peers report. The records of a host are unchanged if no peer has an endpoint of
 * it. Any other host has one merged record. Only hosts that changed are merged again.
 */
export class MergedSource implements RecordSource {
  readonly #parts: MergedSourceParts
  /** By `lowerNameKey` of the host. */
  readonly #hosts = new Map<string, Host>()
  readonly #dirty = new Set<string>()
  readonly #listeners = new Set<(changes: readonly RecordChange[]) => void>()
  readonly #guarded: Guarded
  readonly #stops: (() => void)[] = []
  /** How long each peer has been silent. */
  readonly #silences = new Map<PeerFollower, Silence>()
  /** By host: its problems, as logged. */
  readonly #troubles = new Map<string, HostTroubles>()
  readonly #ownHosts: OwnHosts
  /** Hosts that peers have endpoints of, and hosts by the names above them. */
  readonly #peered = new Set<string>()
  readonly #peeredIndex = new HostIndex()
  /** Hosts of which our own records changed while peers have hosts below them. */
  readonly #screenBelow = new Set<string>()
  /** By host: when data expires that a reachable peer did not confirm. Monotonic milliseconds. */
  readonly #dueMs = new Map<string, number>()
  /** Sites that reported the endpoints of each merged record, in its order. */
  readonly #sites = new WeakMap<StoredRecord, readonly (readonly string[])[]>()
  /** Conflicts logged since the last check. */
  #logged = 0
  /** A scheduled run will process the dirty hosts. */
  #isScheduled = false
  #isClosed = false

  constructor(parts: MergedSourceParts) {
    const { own, health, peers, timers, log, zones = [], servers = [] } = parts
    this.#parts = parts
    const recordsOf = (host: string) => this.#hosts.get(keyOfHost(host))?.own ?? RecordSet.EMPTY
    this.#ownHosts = new OwnHosts({ zones, servers, recordsOf })
    this.#guarded = guarding(log, 'Merging the endpoints of peers')
    this.#stops.push(own.subscribe((changes) => this.#takeOwn(changes)))
    this.#stops.push(health.subscribe((keys) => this.#takeHealth(keys)))
    for (const record of own.records()) {
      if (parts.allows(record)) this.#addOwn(record)
    }
    for (const host of this.#hosts.values()) host.given = host.own
    for (const peer of peers) {
      this.#noteSilence(peer)
      this.#stops.push(peer.subscribe((hosts) => this.#takePeer(hosts)))
      for (const host of peer.hosts()) this.#dirty.add(host)
    }
    this.#stops.push(timers.every(EXPIRY_CHECK_MS, () => this.#checkSilence()))
  }

  /** Resolves once all data of peers so far is merged. Call it before the first read. */
  async ready(): Promise<void> {
    this.#work()
    while (this.#dirty.size > 0 && !this.#isClosed) {
      await new Promise((resume) => setImmediate(resume))
    }
  }

  close(): void {
    this.#isClosed = true
    for (const stop of this.#stops.splice(0)) stop()
    this.#listeners.clear()
    for (const { own } of this.#hosts.values()) for (const record of own) this.#forget(record)
  }

  *records(): Iterable<StoredRecord> {
    for (const { given } of this.#hosts.values()) yield* given
  }

  find(key: string): StoredRecord | undefined {
    const own = this.#parts.own.find(key)
    const hostKey = own === undefined ? mergedHostKeyOf(key) : hostKeyOf(own)
    return this.#hosts.get(hostKey)?.given.get(key)
  }

  /** Returns the sites that reported each endpoint of a record; undefined = it is our own record. */
  sitesOf(record: StoredRecord): readonly (readonly string[])[] | undefined {
    return this.#sites.get(record)
  }

  get recordCount(): number {
    return this.#parts.own.recordCount
  }

  get isChanging(): boolean {
    return this.#parts.own.isChanging === true || this.#dirty.size > 0
  }

  problems(): readonly InputError[] {
    return this.#parts.own.problems()
  }

  unreadyReason(): string {
    return this.#parts.own.unreadyReason()
  }

  get disputes(): PeerDisputes {
    let conflicts = 0
    const refused = new Map<string, number>()
    for (const troubles of this.#troubles.values()) {
      conflicts += troubles.conflicts.length
      for (const { peer } of troubles.refused) refused.set(peer, (refused.get(peer) ?? 0) + 1)
    }
    return { conflicts, refused }
  }

  subscribe(listener: (changes: readonly RecordChange[]) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #takeOwn(changes: readonly RecordChange[]): void {
    const { allows } = this.#parts
    for (const { before, after } of changes) {
      // Add first: a host without records, even for a moment, is dropped and must be queried again.
      if (after !== undefined && allows(after)) this.#addOwn(after)
      if (before !== undefined && allows(before)) this.#removeOwn(before)
    }
    this.#work()
  }

  /** Merges the hosts of these records again, if peers have endpoints of them. */
  #takeHealth(keys: ReadonlySet<string>): void {
    const { own } = this.#parts
    for (const key of keys) {
      const record = own.find(key)
      const host = record && this.#hosts.get(hostKeyOf(record))
      if (host !== undefined && this.#peered.has(host.text)) this.#dirty.add(host.text)
    }
    this.#work()
  }

  #addOwn(record: StoredRecord): void {
    const key = hostKeyOf(record)
    const known = this.#hosts.get(key)
    const text = known?.text ?? printHost(Buffer.from(key, 'latin1'))
    const host: Host = known ?? { text, own: new RecordSet(), given: RecordSet.EMPTY }
    changeable(host).add(record)
    this.#hosts.set(key, host)
    this.#ownHosts.add(text, record)
    this.#noteOwn(text)
    for (const peer of this.#parts.peers) peer.want(rootHostOf(record))
  }

  #removeOwn(record: StoredRecord): void {
    const host = this.#hosts.get(hostKeyOf(record))
    if (host === undefined) return
    changeable(host).delete(record)
    this.#ownHosts.remove(host.text, record)
    this.#noteOwn(host.text)
    this.#forget(record)
  }

  /** Our records of the host changed, so peers may now report more or less about hosts above and below it. */
  #noteOwn(text: string): void {
    this.#dirty.add(text)
    for (const above of namesAbove(text)) if (this.#peered.has(above)) this.#dirty.add(above)
    if (this.#peeredIndex.hasBelow(text)) this.#screenBelow.add(text)
  }

  #screenAgain(): void {
    if (this.#screenBelow.size === 0) return
    for (const host of this.#peered) {
      for (const above of namesAbove(host)) if (this.#screenBelow.has(above)) this.#dirty.add(host)
    }
    this.#screenBelow.clear()
  }

  #forget(record: StoredRecord): void {
    for (const peer of this.#parts.peers) peer.forget(rootHostOf(record))
  }

  #takePeer(hosts: ReadonlySet<string>): void {
    for (const host of hosts) this.#dirty.add(host)
    this.#work()
  }

  #checkSilence(): void {
    const { peers, quorum, clock, log } = this.#parts
    if (quorum?.check() === true) for (const host of this.#peered) this.#dirty.add(host)
    for (const peer of peers) {
      if (!this.#noteSilence(peer)) continue
      for (const host of peer.hosts()) this.#dirty.add(host)
    }
    const nowMs = clock.monotonic()
    for (const [host, dueMs] of this.#dueMs) {
      if (dueMs > nowMs) continue
      this.#dueMs.delete(host)
      this.#dirty.add(host)
    }
    const unlogged = this.#logged - LOGGED_MAX
    if (unlogged > 0) log.warning(`and ${unlogged} more disagreements of sites`)
    this.#logged = 0
    this.#screenAgain()
    this.#work()
  }

  /** Returns false if the silence of the peer did not change. */
  #noteSilence(peer: PeerFollower): boolean {
    const { clock, expiryMs, log } = this.#parts
    const { lastSeenMs } = peer
    const silentMs = wasHeard(lastSeenMs) ? clock.monotonic() - lastSeenMs : 0
    const silence = silenceAfter(silentMs, expiryMs, EXPIRY_CHECK_MS)
    if (silence === (this.#silences.get(peer) ?? 'none')) return false
    this.#silences.set(peer, silence)
    if (silence === 'expired')
      log.warning(
        `peer ${peer.status.address} silent for longer than expire: removing its endpoints`,
      )
    return true
  }

  /** Processes the dirty hosts: the first at once, the others in slices between other work. */
  #work(): void {
    if (this.#isScheduled || this.#isClosed || this.#dirty.size === 0) return
    void this.#guarded(() => this.#settleSlice())
    if (this.#dirty.size === 0) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#work()
    })
  }

  #settleSlice(): void {
    const { clock } = this.#parts
    const endMs = clock.monotonic() + SLICE_MS
    const changes: RecordChange[] = []
    for (const text of this.#dirty) {
      this.#dirty.delete(text)
      this.#settle(text, changes)
      if (clock.monotonic() >= endMs) break
    }
    if (changes.length === 0) return
    for (const listener of this.#listeners) listener(changes)
  }

  #settle(text: string, changes: RecordChange[]): void {
    const key = keyOfHost(text)
    if (key === '') return
    const host = this.#hosts.get(key) ?? { text, own: new RecordSet(), given: RecordSet.EMPTY }
    const given = this.#give(host)
    for (const change of differences(host.given, given)) changes.push(change)
    host.given = given
    if (given.size === 0 && host.own.size === 0) this.#hosts.delete(key)
    else this.#hosts.set(key, host)
  }

  #give(host: Host): RecordSet {
    const { peers, site, expiryMs, clock } = this.#parts
    const others: SiteState[] = []
    const nowMs = clock.monotonic()
    let dueMs = Number.POSITIVE_INFINITY
    for (const peer of peers) {
      for (const siteState of peer.siteStatesOf(host.text)) {
        if (siteState.site === site) continue
        others.push(siteState)
        const expiresMs = siteState.seenMs + expiryMs
        const isAlone = siteState.seenMs < peer.lastSeenMs && siteState.endpoints.length > 0
        // The peer sends no event when it confirms the data later, so the host is checked again.
        const nextMs = expiresMs > nowMs ? expiresMs : nowMs + HOST_MS
        if (isAlone) dueMs = Math.min(dueMs, nextMs)
      }
    }
    if (dueMs === Number.POSITIVE_INFINITY) this.#dueMs.delete(host.text)
    else this.#dueMs.set(host.text, dueMs)
    const isPeered = others.some(hasEndpoints)
    this.#notePeered(host.text, isPeered)
    // Such a host has no room for endpoints of peers. Finding that out again at each of their
    // changes takes seconds.
    const isFull = host.own.size > DERIVED_ENDPOINTS_MAX
    if (isPeered && !isFull) return this.#screen(host, others)
    this.#parts.quorum?.forget(host.text)
    this.#noteTroubles(host.text, isPeered ? noRoom(host) : NO_TROUBLES)
    return host.own
  }

  #notePeered(host: string, isPeered: boolean): void {
    if (isPeered === this.#peered.has(host)) return
    if (isPeered) {
      this.#peered.add(host)
      this.#peeredIndex.add(host)
    } else {
      this.#peered.delete(host)
      this.#peeredIndex.remove(host)
    }
  }

  #screen(host: Host, states: readonly SiteState[]): RecordSet {
    const { exporter, health, rulesOf = () => [] } = this.#parts
    const kept: StoredRecord[] = []
    const mine: { record: StoredRecord; content: RecordContent }[] = []
    for (const record of host.own) {
      const content = unpackRecord(record.packed)
      // Aggregates that an operator assembled are not exported by a site, so they are kept beside
      // the merge.
      if (content.isAggregate || content.zoneLabel === KDRNT) kept.push(record)
      else mine.push({ record, content })
    }
    const endpoints = mine.flatMap(({ record, content }) =>
      exporter.endpointsOf({ record, health: health.healthOf(record.key) }, content, undefined),
    )
    const names = this.#ownHosts.beside(
      host.own,
      mine.map(({ record }) => record),
    )
    const { siteStates, refused } = screenSiteStates(states, { names, own: endpoints, rulesOf })
    if (!siteStates.some(hasEndpoints)) {
      this.#parts.quorum?.forget(host.text)
      this.#noteTroubles(host.text, { conflicts: [], refused })
      return host.own
    }
    const down = downTargets(mine.flatMap(({ record }) => health.healthOf(record.key).down))
    const facts = {
      zoneLabel: mine.find(({ content }) => content.zoneLabel !== '')?.content.zoneLabel ?? '',
      createdSeconds:
        mine.find(({ content }) => content.createdSeconds > 0)?.content.createdSeconds ?? 0,
      settings: firstSettings(mine.map(({ content }) => content.settings)),
    }
    const own = { endpoints, down }
    const agreed = this.#agree(host, own, mine, siteStates)
    const partlyDrained = printPartlyDrained(host.text, mine)
    const merged = this.#merge(host, { own, siteStates: agreed, refused, facts, partlyDrained })
    return merged === undefined ? host.own : RecordSet.of([...kept, merged])
  }

  /** Returns the site states with the health that a quorum of sites agrees on. */
  #agree(
    { text: host }: Host,
    own: { readonly endpoints: readonly PeerEndpoint[]; readonly down: readonly string[] },
    mine: readonly { readonly record: StoredRecord; readonly content: RecordContent }[],
    siteStates: readonly SiteState[],
  ): readonly SiteState[] {
    const { quorum, health } = this.#parts
    if (quorum === undefined) return siteStates
    const checked = mine.filter(({ content }) => content.healthCheck !== undefined)
    const keys = checked.map(({ record }) => record.key).sort()
    const settled = quorum.settle({
      host,
      own: own.endpoints,
      ownDown: own.down,
      checkedKey: keys[0] ?? '',
      observed: keys.flatMap((key) => health.healthOf(key).observed ?? []),
      siteStates,
    })
    const dueMs = Math.min(settled.dueMs ?? Infinity, this.#dueMs.get(host) ?? Infinity)
    if (dueMs !== Infinity) this.#dueMs.set(host, dueMs)
    return settled.siteStates
  }

  #merge(
    host: Host,
    given: {
      readonly own: Pick<OwnState, 'endpoints' | 'down'>
      readonly siteStates: readonly SiteState[]
      readonly refused: readonly Refused[]
      /** Why drains by annotations have no effect. */
      readonly partlyDrained: readonly string[]
      readonly facts: Pick<DnsRecord, 'zoneLabel' | 'createdSeconds' | 'settings'>
    },
  ): StoredRecord | undefined {
    const { site, clock, expiryMs } = this.#parts
    const own = { site, ...given.own }
    const merge = mergeSiteStates(own, given.siteStates, clock.monotonic(), expiryMs)
    const facts = { namespace: MERGED_NAMESPACE, name: host.text, ...given.facts }
    const { record, sites, refused } = buildMergedRecord(
      dropDown(merge.endpoints),
      facts,
      host.text,
    )
    const conflicts = [
      ...merge.conflicts.map((conflict) => conflict.text),
      ...refused.map(({ sites, reason }) => `${host.text} of ${sites.join()}: ${reason}`),
      ...given.partlyDrained,
    ]
    this.#noteTroubles(host.text, { conflicts, refused: given.refused })
    if (record.endpoints.length === 0) return undefined
    const packed = packRecord(record)
    const key = `${MERGED_NAMESPACE}/${host.text}`
    const known = host.given.get(key)
    if (known?.packed === packed && isDeepStrictEqual(this.#sites.get(known), sites)) return known
    const stored = new StoredRecord(key, packed)
    this.#sites.set(stored, sites)
    return stored
  }

  #noteTroubles(host: string, { conflicts, refused }: HostTroubles): void {
    const known = new Set(textsOf(this.#troubles.get(host) ?? NO_TROUBLES))
    const troubles = { conflicts: conflicts.slice(0, TROUBLES_MAX), refused }
    const texts = textsOf(troubles)
    if (texts.length === 0) this.#troubles.delete(host)
    else this.#troubles.set(host, troubles)
    for (const text of texts) {
      if (known.has(text)) continue
      if (this.#logged++ < LOGGED_MAX) this.#parts.log.warning(text)
    }
  }
}

function noRoom({ text }: Host): HostTroubles {
  const limit = `more than ${DERIVED_ENDPOINTS_MAX} records of the host here`
  return {
    conflicts: [`${text}: ${limit}, endpoints of peers are not served; split the host`],
    refused: [],
  }
}

const hasEndpoints = ({ endpoints }: SiteState): boolean => endpoints.length > 0

/** Returns the host's own records for a change. Leaves `given` unchanged. */
function changeable(host: Host): RecordSet {
  if (host.own === host.given) host.own = RecordSet.of(host.own)
  return host.own
}
