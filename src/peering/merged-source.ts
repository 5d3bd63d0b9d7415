import type { Clock } from '../base/clock.ts'
import type { InputError } from '../base/errors.ts'
import type { Logger } from '../base/telemetry/log.ts'
import type { QuorumAddress } from '../base/telemetry/status.ts'
import type { Timers } from '../base/timers.ts'
import { AddressHealth, type Finding } from '../health/address-health.ts'
import { isSameDrains, NO_DRAINS, type RecordDrains } from '../health/drain/drain.ts'
import type { DrainColumn } from '../health/drain/drain-column.ts'
import { Findings } from '../health/findings.ts'
import type { HealthTable } from '../health/health-table.ts'
import { DERIVED_ENDPOINTS_MAX } from '../records/dns-record.ts'
import { printHost } from '../records/print-endpoint.ts'
import type { RecordChange, RecordSource, StoredRecord } from '../records/record-source.ts'
import type { HostOfSites } from './deaths/if-site-dies.ts'
import {
  HostMerge,
  type HostOutcome,
  type HostRecords,
  hasEndpoints,
  type TargetHealth,
} from './host-merge.ts'
import { HOST_MS } from './host-poll.ts'
import { HostQueue } from './host-queue.ts'
import type { LocalExporter } from './local-exporter.ts'
import { hostKeyOf, keyOfHost, rootHostOf, siteHostKeyOf } from './merged-keys.ts'
import type { PeerFollower } from './peer.ts'
import type { SiteState } from './peer-endpoint.ts'
import { PeerSilences } from './peer-silences.ts'
import { PeeredHosts } from './peered-hosts.ts'
import type { HealthQuorum } from './quorum/health-quorum.ts'
import { differences, RecordSet } from './record-set.ts'
import { nextStaleMs } from './stale-sites.ts'
import { TroubleLog } from './trouble-log.ts'
import { type HostTroubles, NO_TROUBLES } from './troubles.ts'
import { namesAbove } from './trust/host-index.ts'
import { OwnHosts } from './trust/own-hosts.ts'
import type { PeerRule } from './trust/peer-rule.ts'

/** Interval of the checks whether a peer is silent for longer than the expiry time. */
const EXPIRY_CHECK_MS = 1000

interface MergedSourceParts {
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
  /** Decides about the health of peers' addresses. */
  readonly quorum: HealthQuorum
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
}

interface Host extends HostRecords {
  /** Copied before a change if it is the same object as `given`. */
  own: RecordSet
  given: RecordSet
  /** Ids of the findings about records of other sites; undefined = none. */
  findings?: readonly string[] | undefined
  /** Decisions of sites that last changed the health of an address, as text. */
  changes?: string
}

const NO_FINDINGS: ReadonlyMap<string, Finding> = new Map()

/**
 * Our own records, and beside them the records of the same hosts that peers report, each with the health of its
 * addresses. Our own records are unchanged. Only hosts that changed are read again.
 */
export class MergedSource implements RecordSource {
  readonly #parts: MergedSourceParts
  /** By `lowerNameKey` of the host. */
  readonly #hosts = new Map<string, Host>()
  readonly #queue: HostQueue
  readonly #listeners = new Set<(changes: readonly RecordChange[]) => void>()
  readonly #stops: (() => void)[] = []
  readonly #silences: PeerSilences
  readonly #troubles: TroubleLog
  readonly #ownHosts: OwnHosts
  readonly #merge: HostMerge
  /** The health of records of other sites. */
  readonly #health = new AddressHealth()
  readonly #findings = new Findings(this.#health)
  /** The health of our own records, and that of other sites. */
  readonly found: readonly AddressHealth[]
  /** The drains of all records; undefined = none is known yet. */
  #drains: DrainColumn | undefined
  /** The drains with which the host of a record was merged; missing = none. */
  readonly #merged = new WeakMap<StoredRecord, RecordDrains>()
  readonly #peered = new PeeredHosts()
  /** By host: when data expires that a reachable peer did not confirm. Monotonic milliseconds. */
  readonly #dueMs = new Map<string, number>()

  constructor(parts: MergedSourceParts) {
    const { own, health, peers, timers, clock, log, expiryMs, zones = [], servers = [] } = parts
    this.#parts = parts
    this.#queue = new HostQueue({ merge: (hosts) => this.#settle(hosts), clock, log })
    this.#silences = new PeerSilences({ expiryMs, checkMs: EXPIRY_CHECK_MS, clock, log })
    this.found = [health, this.#health]
    this.#ownHosts = new OwnHosts({ zones, servers, recordsOf: (host) => this.recordsOf(host) })
    const drainsOf = (record: StoredRecord): RecordDrains => this.#drainsOf(record)
    this.#merge = new HostMerge({ ...parts, ownHosts: this.#ownHosts, drainsOf })
    this.#troubles = new TroubleLog(log)
    this.#stops.push(own.subscribe((changes) => this.#takeOwn(changes)))
    this.#stops.push(health.subscribe((keys) => this.#takeHealth(keys)))
    for (const record of own.records()) {
      if (parts.allows(record)) this.#addOwn(record)
    }
    for (const host of this.#hosts.values()) host.given = host.own
    for (const peer of peers) {
      this.#silences.check(peer)
      this.#stops.push(peer.subscribe((hosts) => this.#takePeer(hosts)))
      for (const host of peer.hosts()) this.#queue.add(host)
    }
    this.#stops.push(timers.every(EXPIRY_CHECK_MS, () => this.#checkSilence()))
  }

  /** Merges hosts again when drains of our own records change, from now on. */
  followDrains(table: HealthTable): void {
    this.#drains = table.drains
    this.#stops.push(table.follow((keys) => this.#takeDrains(keys)))
    this.#takeDrains(table.recordKeys())
  }

  /** Resolves once all data of peers so far is merged. Call it before the first read. */
  ready(): Promise<void> {
    return this.#queue.finish()
  }

  close(): void {
    this.#queue.close()
    for (const stop of this.#stops.splice(0)) stop()
    this.#listeners.clear()
    for (const { own } of this.#hosts.values()) for (const record of own) this.#forget(record)
  }

  *records(): Iterable<StoredRecord> {
    for (const { given } of this.#hosts.values()) yield* given
  }

  find(key: string): StoredRecord | undefined {
    const own = this.#parts.own.find(key)
    const hostKey = own === undefined ? siteHostKeyOf(key) : hostKeyOf(own)
    return this.#hosts.get(hostKey)?.given.get(key)
  }

  /** Returns our own records of a host and of its wildcard. */
  recordsOf(host: string): RecordSet {
    return this.#hosts.get(keyOfHost(host))?.own ?? RecordSet.EMPTY
  }

  /**
   * Returns the decisions of sites that last changed the health of addresses of a host; '' = none did. `key`: of a
   * record of another site.
   */
  decisionOf(key: string): string {
    return this.#hosts.get(siteHostKeyOf(key))?.changes ?? ''
  }

  /** Returns what sites found of addresses of peers, if some site found the address down; at most `countMax`. */
  inspect(countMax: number): readonly QuorumAddress[] {
    const found: QuorumAddress[] = []
    for (const text of this.#parts.quorum.noted.keys()) {
      if (found.length >= countMax) break
      const host = this.#hosts.get(keyOfHost(text))
      if (host !== undefined) found.push(...this.#merge.inspect(host, this.#statesFor(text)))
    }
    return found.slice(0, countMax)
  }

  /** As of `HostMerge`, for the hosts at and above a name without a final dot. */
  explainHealth(name: string): readonly TargetHealth[] {
    const hosts = [name, ...namesAbove(name)].filter((host) => this.#peered.has(host))
    return hosts.flatMap((text) => {
      const host = this.#hosts.get(keyOfHost(text))
      return host === undefined ? [] : this.#merge.explainHealth(host, this.#statesFor(text))
    })
  }

  /** Yields each host in one of the zones, as of `HostMerge`. */
  *hostsOfSites(): Iterable<HostOfSites> {
    const zones = new Set(this.#parts.zones)
    for (const host of this.#hosts.values()) {
      const names = [host.text, ...namesAbove(host.text), '']
      const isServed = zones.size === 0 || names.some((name) => zones.has(name))
      if (isServed && !isFull(host)) yield this.#merge.sitesOf(host, this.#statesFor(host.text))
    }
  }

  get recordCount(): number {
    return this.#parts.own.recordCount
  }

  get isChanging(): boolean {
    return this.#parts.own.isChanging === true || this.#queue.size > 0
  }

  problems(): readonly InputError[] {
    return this.#parts.own.problems()
  }

  unreadyReason(): string {
    return this.#parts.own.unreadyReason()
  }

  get troubles(): Pick<TroubleLog, 'disputes' | 'texts'> {
    return this.#troubles
  }

  subscribe(listener: (changes: readonly RecordChange[]) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #takeOwn(changes: readonly RecordChange[]): void {
    const { allows } = this.#parts
    for (const { before, after } of changes) {
      if (before !== undefined && after !== undefined) this.#noteMove(before, after)
      // Add first: a host without records, even for a moment, is dropped and must be queried again.
      if (after !== undefined && allows(after)) this.#addOwn(after)
      if (before !== undefined && allows(before)) this.#removeOwn(before)
    }
    this.#queue.work()
  }

  /** A record that moves to another host leaves the old one first: listeners know one record of each key. */
  #noteMove(before: StoredRecord, after: StoredRecord): void {
    const [from, to] = [hostKeyOf(before), hostKeyOf(after)]
    if (from === to) return
    const text = this.#hosts.get(from)?.text
    if (text !== undefined) this.#queue.add(text)
    this.#queue.postpone(this.#hosts.get(to)?.text ?? '')
  }

  /** Merges hosts again if the drains of their records have changed since the last merge. */
  #takeDrains(keys: Iterable<string>): void {
    const changed = [...keys].filter((key) => {
      const record = this.#parts.own.find(key)
      if (record === undefined) return false
      const before = this.#merged.get(record) ?? NO_DRAINS
      return !isSameDrains(before, this.#drainsOf(record))
    })
    this.#takeHealth(changed)
  }

  #noteDrains(records: RecordSet): void {
    for (const record of records) {
      const drains = this.#drainsOf(record)
      if (drains !== NO_DRAINS || this.#merged.has(record)) this.#merged.set(record, drains)
    }
  }

  #drainsOf(record: StoredRecord): RecordDrains {
    return this.#drains?.drainsOf(record) ?? NO_DRAINS
  }

  /** Merges the hosts of these records again, if peers have endpoints of them. */
  #takeHealth(keys: Iterable<string>): void {
    const { own } = this.#parts
    for (const key of keys) {
      const record = own.find(key)
      const host = record && this.#hosts.get(hostKeyOf(record))
      if (host !== undefined && this.#peered.has(host.text)) this.#queue.add(host.text)
    }
    this.#queue.work()
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
    this.#queue.add(text)
    for (const above of namesAbove(text)) if (this.#peered.has(above)) this.#queue.add(above)
    this.#peered.noteOwn(text)
  }

  #forget(record: StoredRecord): void {
    for (const peer of this.#parts.peers) peer.forget(rootHostOf(record))
  }

  #takePeer(hosts: ReadonlySet<string>): void {
    for (const host of hosts) this.#queue.add(host)
    this.#queue.work()
  }

  #checkSilence(): void {
    const { peers, quorum, clock } = this.#parts
    if (quorum.check()) for (const host of this.#peered) this.#queue.add(host)
    for (const peer of peers) {
      if (!this.#silences.check(peer)) continue
      for (const host of peer.hosts()) this.#queue.add(host)
    }
    const nowMs = clock.monotonic()
    for (const [host, dueMs] of this.#dueMs) {
      if (dueMs > nowMs) continue
      this.#dueMs.delete(host)
      this.#queue.add(host)
    }
    this.#troubles.endInterval()
    for (const host of this.#peered.takeBelow()) this.#queue.add(host)
    this.#queue.work()
  }

  /** Merges hosts again, and announces all their changes at once. */
  #settle(hosts: Iterable<string>): void {
    const changes = new Map<string, RecordChange>()
    for (const text of hosts) this.#settleHost(text, changes)
    const all = [...changes.values()]
    if (all.length > 0) for (const listener of this.#listeners) listener(all)
    this.#health.publish()
  }

  /** Adds the changes of a host, by key of the record: one that moves between hosts is one change. */
  #settleHost(text: string, changes: Map<string, RecordChange>): void {
    const key = keyOfHost(text)
    if (key === '') return
    const host = this.#hosts.get(key) ?? { text, own: new RecordSet(), given: RecordSet.EMPTY }
    const { given, findings } = this.#give(host)
    for (const change of differences(host.given, given)) {
      const { key } = (change.before ?? change.after)!
      const { before, after } = changes.get(key) ?? change
      changes.set(key, { before: change.before ?? before, after: change.after ?? after })
    }
    host.given = given
    this.#note(host, findings)
    if (given.size === 0 && host.own.size === 0) this.#hosts.delete(key)
    else this.#hosts.set(key, host)
  }

  /** Replaces the findings about the records of other sites. */
  #note(host: Host, findings: ReadonlyMap<string, Finding>): void {
    for (const id of host.findings ?? []) if (!findings.has(id)) this.#findings.set(id, undefined)
    for (const [id, finding] of findings) this.#findings.set(id, finding)
    host.findings = findings.size === 0 ? undefined : [...findings.keys()]
  }

  #give(host: Host): Pick<HostOutcome, 'given' | 'findings'> {
    const { peers, expiryMs, clock, quorum } = this.#parts
    const nowMs = clock.monotonic()
    let dueMs = Number.POSITIVE_INFINITY
    const others = peers.flatMap((peer) => {
      const siteStates = this.#statesOf(peer, host.text)
      for (const { seenMs, endpoints } of siteStates) {
        if (endpoints.length === 0) continue
        // The peer sends no event when it confirms the data later, so the host is checked again.
        const isAlone = seenMs < peer.lastSeenMs
        const rules = { nowMs, expiryMs, isAlone, recheckMs: HOST_MS }
        dueMs = Math.min(dueMs, nextStaleMs(seenMs, rules))
      }
      return siteStates
    })
    const isPeered = others.some(hasEndpoints)
    this.#peered.set(host.text, isPeered)
    if (!isPeered || isFull(host)) {
      quorum.forget(host.text)
      this.#noteDue(host.text, dueMs)
      this.#troubles.note(host.text, isPeered ? noRoom(host) : NO_TROUBLES)
      return { given: host.own, findings: NO_FINDINGS }
    }
    this.#noteDrains(host.own)
    const merged = this.#merge.merge(host, others)
    if (merged.changes !== '') host.changes = merged.changes
    this.#noteDue(host.text, Math.min(dueMs, merged.dueMs ?? dueMs))
    this.#troubles.note(host.text, merged.troubles)
    return merged
  }

  /** Returns what a peer reports of the host, except of our own site. */
  #statesOf(peer: PeerFollower, host: string): readonly SiteState[] {
    return peer.siteStatesOf(host).filter(({ site }) => site !== this.#parts.site)
  }

  #statesFor(host: string): readonly SiteState[] {
    return this.#parts.peers.flatMap((peer) => this.#statesOf(peer, host))
  }

  #noteDue(host: string, dueMs: number): void {
    if (dueMs === Number.POSITIVE_INFINITY) this.#dueMs.delete(host)
    else this.#dueMs.set(host, dueMs)
  }
}

function noRoom({ text }: Host): HostTroubles {
  const limit = `this site has more than ${DERIVED_ENDPOINTS_MAX} records of the host`
  return { unserved: [`${text}: ${limit}; divide the endpoints among several hosts`], refused: [] }
}

/**
 * Such a host has no room for endpoints of peers. Finding that out again at each of their changes
 * takes seconds.
 */
function isFull({ own }: Host): boolean {
  return own.size > DERIVED_ENDPOINTS_MAX
}

/** Returns the host's own records for a change. Leaves `given` unchanged. */
function changeable(host: Host): RecordSet {
  if (host.own === host.given) host.own = RecordSet.of(host.own)
  return host.own
}
