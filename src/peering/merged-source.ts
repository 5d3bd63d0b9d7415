import type { Clock } from '../base/clock.ts'
import type { InputError } from '../base/errors.ts'
import { SLICE_MS } from '../base/slices.ts'
import type { Timers } from '../base/timers.ts'
import { KDRNT } from '../record/local-zone.ts'
import { packRecord, unpackPlace, unpackRecord } from '../record/pack.ts'
import { printHost } from '../record/print-endpoint.ts'
import { Served } from '../record/served.ts'
import type { RecordChange, RecordSource, StoredRecord } from '../record/source.ts'
import { lowerNameKey, scanHost } from '../record/validate/names.ts'
import { type Contained, containing } from '../telemetry/contain.ts'
import type { Logger } from '../telemetry/log.ts'
import { HOST_MS } from './host-poll.ts'
import type { LocalTeller } from './local-teller.ts'
import { yieldMsOf } from './merge/choose-shares.ts'
import { dropDown } from './merge/health.ts'
import { mergeShares } from './merge/merge-shares.ts'
import { buildMergedRecord } from './merged-form.ts'
import type { PeerFollower } from './peer.ts'
import { wasHeard } from './peer-status.ts'
import type { SharedEndpoint, SiteShare } from './shared-endpoint.ts'

/** How often to look whether a peer has been silent for too long. */
const EXPIRY_LOOK_MS = 1000
/** Disagreements that are logged one by one within that time, and those of one host that are remembered. */
const LOGGED_MAX = 20
const TROUBLES_MAX = 100
/** Of merged records, which go by their host. */
const MERGED_NAMESPACE = 'peers'

export interface MergedSourceParts {
  /** Our own records. */
  readonly own: RecordSource
  /** Which of them count. */
  readonly allows: (record: StoredRecord) => boolean
  readonly site: string
  readonly teller: LocalTeller
  readonly peers: readonly PeerFollower[]
  readonly expiryMs: number
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
}

/** A host without its `*.`, as records of several sites have it. */
interface Host {
  readonly text: string
  /** Our own records of it. */
  own: readonly StoredRecord[]
  /** What stands for it in the zones: our own records, or all of them merged with the peers' into one. */
  given: readonly StoredRecord[]
}

/**
 * Our own records together with what peers tell. A host that no peer has an endpoint of stays as it is; of any
 * other there is one record, merged as every site merges it. Only hosts that changed are merged again.
 */
export class MergedSource implements RecordSource {
  readonly #parts: MergedSourceParts
  /** By `lowerNameKey` of the host. */
  readonly #hosts = new Map<string, Host>()
  readonly #dirty = new Set<string>()
  readonly #listeners = new Set<(changes: readonly RecordChange[]) => void>()
  readonly #contained: Contained
  readonly #stops: (() => void)[] = []
  /** How long each peer has been silent. */
  readonly #silences = new Map<PeerFollower, Silence>()
  /** By host: what is amiss with it, as it was logged. */
  readonly #troubles = new Map<string, readonly string[]>()
  /** By host: when a word expires of a peer that is heard, but did not confirm it. Monotonic. */
  readonly #dueMs = new Map<string, number>()
  /** Disagreements since the last look. */
  #logged = 0
  /** The work goes on by itself. */
  #isScheduled = false
  #isClosed = false

  constructor(parts: MergedSourceParts) {
    const { own, peers, timers, log } = parts
    this.#parts = parts
    this.#contained = containing(log, 'Merging what peers tell')
    this.#stops.push(own.subscribe((changes) => this.#takeOwn(changes)))
    for (const record of own.records()) {
      if (parts.allows(record)) this.#addOwn(record)
    }
    for (const host of this.#hosts.values()) host.given = host.own
    for (const peer of peers) {
      this.#noteSilence(peer)
      this.#stops.push(peer.subscribe((hosts) => this.#takePeer(hosts)))
      for (const host of peer.hosts()) this.#dirty.add(host)
    }
    this.#stops.push(timers.every(EXPIRY_LOOK_MS, () => this.#lookForSilence()))
  }

  /** Resolves once what peers have told up to now is merged. To be called before anything is read. */
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
    return this.#hosts.get(hostKey)?.given.find((record) => record.key === key)
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

  subscribe(listener: (changes: readonly RecordChange[]) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #takeOwn(changes: readonly RecordChange[]): void {
    const { allows } = this.#parts
    for (const { before, after } of changes) {
      // In this order: a host that is forgotten, for a moment only, has to be asked for anew.
      if (after !== undefined && allows(after)) this.#addOwn(after)
      if (before !== undefined && allows(before)) this.#removeOwn(before)
    }
    this.#work()
  }

  #addOwn(record: StoredRecord): void {
    const key = hostKeyOf(record)
    const known = this.#hosts.get(key)
    const text = known?.text ?? printHost(Buffer.from(key, 'latin1'))
    const host: Host = known ?? { text, own: [], given: [] }
    host.own = [...host.own, record]
    this.#hosts.set(key, host)
    this.#dirty.add(text)
    for (const peer of this.#parts.peers) peer.want(rootHostOf(record))
  }

  #removeOwn(record: StoredRecord): void {
    const host = this.#hosts.get(hostKeyOf(record))
    if (host === undefined) return
    host.own = host.own.filter((other) => other !== record)
    this.#dirty.add(host.text)
    this.#forget(record)
  }

  #forget(record: StoredRecord): void {
    for (const peer of this.#parts.peers) peer.forget(rootHostOf(record))
  }

  #takePeer(hosts: ReadonlySet<string>): void {
    for (const host of hosts) this.#dirty.add(host)
    this.#work()
  }

  #lookForSilence(): void {
    const { peers, clock, log } = this.#parts
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
    this.#work()
  }

  /** False = it is as silent as it was. */
  #noteSilence(peer: PeerFollower): boolean {
    const { clock, expiryMs, log } = this.#parts
    const { lastSeenMs } = peer
    const silentMs = wasHeard(lastSeenMs) ? clock.monotonic() - lastSeenMs : 0
    const silence = judgeSilence(silentMs, expiryMs)
    if (silence === (this.#silences.get(peer) ?? 'none')) return false
    this.#silences.set(peer, silence)
    if (silence === 'expired')
      log.warning(`peer ${peer.status.address} has been silent for too long: its endpoints go`)
    return true
  }

  /** Settles the hosts that are to be looked at: the first at once, others run in between. */
  #work(): void {
    if (this.#isScheduled || this.#isClosed || this.#dirty.size === 0) return
    void this.#contained(() => this.#settleSlice())
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
    const name = scanHost(text)
    if (name === undefined) return
    const key = lowerNameKey(name)
    const host = this.#hosts.get(key) ?? { text, own: [], given: [] }
    const given = this.#give(host)
    changes.push(...differences(host.given, given))
    host.given = given
    if (given.length === 0 && host.own.length === 0) this.#hosts.delete(key)
    else this.#hosts.set(key, host)
  }

  #give(host: Host): readonly StoredRecord[] {
    const { peers, site, expiryMs, clock } = this.#parts
    const others: SiteShare[] = []
    const nowMs = clock.monotonic()
    let dueMs = Number.POSITIVE_INFINITY
    for (const peer of peers) {
      for (const share of peer.sharesOf(host.text)) {
        if (share.site === site) continue
        others.push(share)
        const expiresMs = share.seenMs + expiryMs
        const isAlone = share.seenMs < peer.lastSeenMs && share.endpoints.length > 0
        // That it is confirmed after all is no news of the peer's: it has to be looked for.
        const lookMs = expiresMs > nowMs ? expiresMs : nowMs + HOST_MS
        if (isAlone) dueMs = Math.min(dueMs, lookMs)
      }
    }
    if (dueMs === Number.POSITIVE_INFINITY) this.#dueMs.delete(host.text)
    else this.#dueMs.set(host.text, dueMs)
    if (others.some(({ endpoints }) => endpoints.length > 0)) return this.#merge(host, others)
    this.#noteTroubles(host.text, [])
    return host.own
  }

  #merge(host: Host, shares: readonly SiteShare[]): readonly StoredRecord[] {
    const { site, teller, clock, expiryMs } = this.#parts
    const kept: StoredRecord[] = []
    const own: SharedEndpoint[] = []
    let zoneLabel = ''
    let createdSeconds = 0
    for (const record of host.own) {
      const content = unpackRecord(record.packed)
      // What an operator has put together is not what a site has to tell, and stands beside it.
      if (content.isAggregate || content.zoneLabel === KDRNT) {
        kept.push(record)
        continue
      }
      own.push(...teller.share(record, content, undefined))
      zoneLabel ||= content.zoneLabel
      createdSeconds ||= content.createdSeconds
    }
    const merge = mergeShares({ site, endpoints: own }, shares, clock.monotonic(), expiryMs)
    const facts = { namespace: MERGED_NAMESPACE, name: host.text, zoneLabel, createdSeconds }
    const { record, refused } = buildMergedRecord(dropDown(merge.endpoints), facts, host.text)
    const troubles = [
      ...merge.conflicts.map((conflict) => conflict.text),
      ...refused.map(({ sites, reason }) => `${host.text} of ${sites.join()}: ${reason}`),
    ]
    this.#noteTroubles(host.text, troubles)
    if (record.endpoints.length === 0) return host.own
    const packed = packRecord(record)
    const known = host.given.find((given) => given.packed === packed)
    return [...kept, known ?? new Served(`${MERGED_NAMESPACE}/${host.text}`, packed, [])]
  }

  #noteTroubles(host: string, troubles: readonly string[]): void {
    const known = this.#troubles.get(host) ?? []
    if (troubles.length === 0) {
      this.#troubles.delete(host)
      return
    }
    this.#troubles.set(host, troubles.slice(0, TROUBLES_MAX))
    const told = new Set(known)
    for (const text of troubles.slice(0, TROUBLES_MAX)) {
      if (told.has(text)) continue
      if (this.#logged++ < LOGGED_MAX) this.#parts.log.warning(text)
    }
  }
}

/** `late`: it has no say beside another nameserver of its site. `expired`: its word does not hold any more. */
type Silence = 'none' | 'late' | 'expired'

function judgeSilence(silentMs: number, expiryMs: number): Silence {
  if (silentMs >= expiryMs) return 'expired'
  return silentMs > yieldMsOf(expiryMs) + EXPIRY_LOOK_MS ? 'late' : 'none'
}

function hostKeyOf(record: StoredRecord): string {
  return unpackPlace(record.packed).rootHostKey
}

/** As `hostKeyOf`, by the key of a merged record; '' = it is that of none. */
function mergedHostKeyOf(key: string): string {
  const prefix = `${MERGED_NAMESPACE}/`
  const host = key.startsWith(prefix) ? scanHost(key.slice(prefix.length)) : undefined
  return host === undefined ? '' : lowerNameKey(host)
}

/** As in a SharedEndpoint. */
function rootHostOf({ packed }: StoredRecord): string {
  const { rootHostKey, isWildcardHost } = unpackPlace(packed)
  const host = printHost(Buffer.from(rootHostKey, 'latin1'))
  return isWildcardHost ? `*.${host}` : host
}

/** What leads from some records to others: those of one key are one change. */
function differences(
  from: readonly StoredRecord[],
  to: readonly StoredRecord[],
): readonly RecordChange[] {
  const changes: RecordChange[] = []
  for (const before of from) {
    if (to.includes(before)) continue
    const after = to.find(({ key }) => key === before.key)
    changes.push({ before, after })
  }
  for (const after of to) {
    if (!from.includes(after) && !from.some(({ key }) => key === after.key)) {
      changes.push({ before: undefined, after })
    }
  }
  return changes
}
