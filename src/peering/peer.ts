import { writeMoment } from '../base/moment.ts'
import { runInSlices } from '../base/slices.ts'
import type { Fetching } from '../client/fetch-zone.ts'
import { type HostPort, printHostPort } from '../dns/host-port.ts'
import type { ResourceRecord } from '../dns/message/message.ts'
import { isSerialAfter } from '../dns/serial.ts'
import { type Guarded, guarding } from '../telemetry/guard.ts'
import { TransferFault, UNREACHED } from '../xfr/in/transfer-reader.ts'
import { askHostAt } from './ask-host.ts'
import { apexSoa, askSerial } from './ask-serial.ts'
import { type CachedPeer, identityOf } from './cache/cached-peer.ts'
import { fetchPeerZone, isRefusal } from './fetch-peer-zone.ts'
import { HOST_BOUNDS_DEFAULT, HostPoll } from './host-poll.ts'
import type { Generation, SiteState } from './peer-endpoint.ts'
import type { PeerFollowerOptions } from './peer-options.ts'
import { PeerServers } from './peer-servers.ts'
import { bareHost, type PeerStatus } from './peer-status.ts'
import { PeerZone } from './peer-zone.ts'
import { Refusals } from './refusals.ts'

/** How often a peer is asked for its SOA, and how rarely one that does not answer. */
const POLL_MS = 1000
const POLL_MS_MAX = 15_000
/** Part of a pause that is drawn, so that sites do not fall into step. */
const JITTER = 0.2
/** Least time between two looks, however many NOTIFYs come. */
export const NOTIFY_GAP_MS = 100
/** Until a peer that refused a transfer is asked for one again, and one that could not be reached for it. */
export const TRANSFER_RETRY_MS = 3 * 60_000
const UNREACHED_RETRY_MS = 15_000
/** Longest rest after a transfer: as long as that took, so that a peer gets half of our time at most. */
const REST_MS_MAX = 15_000
/** Between two lines about hosts that can't be asked for. */
const HOST_FAULT_MS = 10_000

/** What it is told by: hosts without their `*.`. */
type Listener = (hosts: ReadonlySet<string>) => void

/**
 * Keeps up with what one peer tells. Its zone kdrnt is asked for its SOA every second, at once on a NOTIFY,
 * and transferred when that is new (v2); a peer that refuses transfers, or tells nothing whole, is asked for
 * each host that is wanted (v1), unless there is a key: then it must let us have the zone.
 *
 *     SOA ─▶ same serial: confirmed
 *         ─▶ new ─▶ IXFR or AXFR ─▶ v2
 *                       └▶ refused, or nothing is told whole ─▶ v1, and again in three minutes
 *
 * What a peer told stays until it says otherwise, however long it is silent: who merges lets it expire.
 */
export class PeerFollower {
  readonly #options: PeerFollowerOptions
  readonly #address: string
  readonly #zone: PeerZone
  readonly #refusals: Refusals
  readonly #hosts: HostPoll
  readonly #guarded: Guarded
  readonly #servers: PeerServers
  readonly #listeners = new Set<Listener>()
  readonly #aborting = new AbortController()
  #fetching: Fetching | undefined
  #cancelPoll = (): void => {}
  #work: Promise<void> = Promise.resolve()
  #isBusy = false
  #again = false
  #generation: Generation | '' = ''
  #serial: number | undefined
  /** Of what was recalled, while nothing newer is known. */
  #recalledSerial: number | undefined
  /** It answered since we began to ask. */
  #hasAnswered = false
  /** Of the version that #zone is of; undefined = all of it is to be asked for. */
  #soa: ResourceRecord | undefined
  #lastSeenMs = Number.NEGATIVE_INFINITY
  #lastSeenTimeMs = 0
  /** When what #zone holds was last confirmed. */
  #zoneSeenMs = Number.NEGATIVE_INFINITY
  #lastPollMs = Number.NEGATIVE_INFINITY
  #transferMs = Number.NEGATIVE_INFINITY
  /** No look before: the last transfer took long. */
  #restUntilMs = Number.NEGATIVE_INFINITY
  #hostFaultMs = Number.NEGATIVE_INFINITY
  #error = ''
  /** Of questions for hosts, while its SOA is to be had. */
  #hostError = ''
  #failures = 0
  #failuresInRow = 0
  #markAnswered: () => void = () => {}
  readonly #answered = new Promise<void>((resolve) => (this.#markAnswered = resolve))

  constructor(options: PeerFollowerOptions) {
    const { clock, peer, log } = options
    this.#options = options
    this.#address = printHostPort(peer)
    this.#servers = new PeerServers(peer, clock)
    this.#zone = new PeerZone(this.#address)
    this.#refusals = new Refusals({ peer: this.#address, log, clock })
    this.#guarded = guarding(log, `Asking peer ${this.#address}`)
    this.#hosts = new HostPoll({
      ask: (host) => this.#askHost(host),
      bounds: options.hostBounds ?? HOST_BOUNDS_DEFAULT,
      nowMs: () => clock.monotonic(),
      onChange: (host) => this.#report(new Set([bareHost(host)])),
      onAnswer: (fault) => this.#noteAnswer(fault),
      onProblems: (host, problems) => this.#refusals.note(host, problems),
    })
  }

  get status(): PeerStatus {
    const isOld = this.#generation === 'v1'
    return {
      address: this.#address,
      keyName: this.#keyName,
      site: (isOld ? this.#hosts.sites : this.#zone.sites).join(),
      generation: this.#generation,
      lastSeenMs: this.#lastSeenMs,
      lastSeenTimeMs: this.#lastSeenTimeMs,
      serial: this.serial,
      isUp: this.isUp,
      error: this.#error || this.#hostError,
      failures: this.#failures,
      endpoints: isOld ? this.#hosts.count : this.#zone.count,
      refused: this.#refusals.count,
    }
  }

  /** As in `status`, which costs more: it counts. */
  get generation(): Generation | '' {
    return this.#generation
  }

  get lastSeenMs(): number {
    return this.#lastSeenMs
  }

  get lastSeenTimeMs(): number {
    return this.#lastSeenTimeMs
  }

  get serial(): number | undefined {
    return this.#serial ?? this.#recalledSerial
  }

  /** As in `status`. */
  get isUp(): boolean {
    return this.#hasAnswered && this.#error === '' && this.#hostError === ''
  }

  /** Whom it follows. */
  get identity(): string {
    return identityOf({ address: this.#address, keyName: this.#keyName })
  }

  get error(): string {
    return this.#error
  }

  get #keyName(): string {
    return this.#options.key?.nameText ?? ''
  }

  /** True if what `sharesOf` says of the host is what the peer says; before, that is nothing as well. */
  hasAnsweredFor(rootHost: string): boolean {
    if (this.#generation === 'v1') return this.#hosts.isKnown(rootHost)
    return this.#generation === 'v2'
  }

  /** Resolves once it was asked for the first time, whatever came of it. */
  answered(): Promise<void> {
    return this.#answered
  }

  /** Resolves once the look that is under way is over. */
  async settled(): Promise<void> {
    await this.#work
  }

  /** Takes up what another process, or another follower, was told. To be called before `start`. */
  recall({ generation, seenMs, zoneSeenMs, serial, ownSite, zone, hosts }: CachedPeer): void {
    this.#generation = generation
    this.#recalledSerial = serial
    this.#lastSeenMs = seenMs
    this.#lastSeenTimeMs = writeMoment(seenMs, this.#options.clock)
    this.#zoneSeenMs = zoneSeenMs
    this.#zone.recall(zone, ownSite)
    for (const [rootHost, siteStates] of hosts) this.#hosts.recall(rootHost, siteStates)
  }

  /**
   * What it was told, for `recall`; undefined = nothing. Of hosts that nobody asked for only what was told
   * since `sinceMs`, monotonic.
   */
  keep(sinceMs: number): CachedPeer | undefined {
    if (this.#generation === '') return undefined
    return {
      address: this.#address,
      keyName: this.#keyName,
      generation: this.#generation,
      seenMs: this.#lastSeenMs,
      zoneSeenMs: this.#zoneSeenMs,
      serial: this.serial,
      ownSite: this.#zone.ownSite,
      zone: this.#zone.exported,
      hosts: this.#hosts.exported(sinceMs, this.#lastSeenMs),
    }
  }

  start(): void {
    this.#schedule(0)
  }

  close(): void {
    this.#hosts.close()
    this.#aborting.abort()
    this.#cancelPoll()
    this.#fetching?.cancel()
    this.#listeners.clear()
  }

  /** The peer says that it has something new. */
  notify(): void {
    if (this.#isBusy) {
      this.#again = true
      return
    }
    const nowMs = this.#options.clock.monotonic()
    const dueMs = Math.max(this.#lastPollMs + NOTIFY_GAP_MS, this.#restUntilMs)
    this.#schedule(Math.max(0, dueMs - nowMs))
  }

  /** True if it is at that address. */
  isAt(host: string): boolean {
    return this.#servers.has(host)
  }

  /** The host is one that a peer of generation v1 is to be asked for. As in a PeerEndpoint. */
  want(rootHost: string): void {
    this.#hosts.want(rootHost)
  }

  forget(rootHost: string): void {
    this.#hosts.forget(rootHost)
  }

  /** Calls back with the hosts that it says something else of; returns the function that ends that. */
  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** All hosts that it tells of, without their `*.`. */
  hosts(): ReadonlySet<string> {
    const hosts = new Set(this.#zone.hosts())
    for (const host of this.#hosts.hosts()) hosts.add(bareHost(host))
    return hosts
  }

  /** What it says of the host, and of its wildcard. `host`: without `*.`. */
  siteStatesOf(host: string): readonly SiteState[] {
    if (this.#generation !== 'v1') return this.#readZone(host)
    const hosts = [host, `*.${host}`]
    const asked = hosts.map((rootHost) => this.#hosts.siteStatesOf(rootHost, this.#lastSeenMs))
    if (asked.every((siteStates) => siteStates === undefined)) {
      return this.#zone.count === 0 ? [] : this.#readZone(host)
    }
    return asked.flatMap((siteStates) => siteStates ?? [])
  }

  /** Why some of what it says of the host, and of its wildcard, is refused; its text is quoted. */
  problemsOf(host: string): readonly string[] {
    return [...this.#refusals.of(host), ...this.#refusals.of(`*.${host}`)]
  }

  #readZone(host: string): readonly SiteState[] {
    const { siteStates, problems } = this.#zone.read(host, this.#zoneSeenMs)
    this.#refusals.note(host, problems)
    return siteStates
  }

  #schedule(delayMs: number): void {
    this.#cancelPoll()
    if (this.#aborting.signal.aborted) return
    this.#cancelPoll = this.#options.timers.after(delayMs, () => {
      this.#work = this.#poll()
    })
  }

  async #poll(): Promise<void> {
    if (this.#isBusy) return
    this.#isBusy = true
    this.#again = false
    this.#lastPollMs = this.#options.clock.monotonic()
    await this.#guarded(() => this.#look())
    this.#isBusy = false
    this.#markAnswered()
    const restMs = this.#restUntilMs - this.#options.clock.monotonic()
    this.#schedule(Math.max(restMs, this.#again ? NOTIFY_GAP_MS : this.#pauseMs()))
  }

  #pauseMs(): number {
    const doubled = POLL_MS * 2 ** Math.min(this.#failuresInRow, 10)
    return Math.min(doubled, POLL_MS_MAX) * (1 - JITTER * this.#options.random())
  }

  async #look(): Promise<void> {
    const server = await this.#servers.resolve()
    if (server === undefined) {
      this.#fail(`there is no host ${this.#options.peer.host}`)
      return
    }
    const { key, sourceFor } = this.#options
    const { signal } = this.#aborting
    const source = sourceFor?.(server.host) ?? ''
    const serial = await askSerial(server, { key, source, signal })
    if (signal.aborted) return
    if (typeof serial === 'string') {
      this.#servers.pass(server)
      this.#fail(serial)
      return
    }
    if (serial !== this.#serial) await this.#takeSerial(server, serial)
    else if (this.#generation === 'v1' && this.#isTransferDue())
      await this.#transfer(server, serial)
    else this.#confirm()
    if (this.#generation === 'v1' && !this.#aborting.signal.aborted) this.#hosts.tick()
  }

  async #takeSerial(server: HostPort, serial: number): Promise<void> {
    if (this.#generation === 'v1') this.#hosts.hurry()
    if (this.#generation !== 'v1' || this.#soa !== undefined || this.#isTransferDue()) {
      await this.#transfer(server, serial)
      return
    }
    this.#serial = serial
    this.#confirm()
  }

  #isTransferDue(): boolean {
    return this.#options.clock.monotonic() >= this.#transferMs
  }

  async #transfer(server: HostPort, serial: number): Promise<void> {
    const { clock } = this.#options
    const changed = new Set<string>()
    const startMs = clock.monotonic()
    try {
      await this.#fetch(server, serial, changed)
      this.#rest(startMs)
    } catch (error) {
      this.#rest(startMs)
      if (!(error instanceof TransferFault)) throw error
      if (this.#aborting.signal.aborted) return
      this.#soa = undefined
      this.#takeFault(error, serial)
      return
    }
    if (this.#aborting.signal.aborted) return
    const isWhole = !this.#zone.isOld || this.#isKeyed
    this.#transferMs = clock.monotonic() + TRANSFER_RETRY_MS
    if (isWhole && this.#generation === 'v1') {
      // What it told host by host it tells here as well, or no longer.
      for (const host of this.#hosts.hosts()) changed.add(bareHost(host))
      this.#hosts.clear()
      this.#refusals.clear()
    }
    this.#enter(isWhole ? 'v2' : 'v1', 'it tells nothing whole')
    this.#confirm()
    this.#report(changed)
  }

  #rest(startMs: number): void {
    const nowMs = this.#options.clock.monotonic()
    this.#restUntilMs = nowMs + Math.min(nowMs - startMs, REST_MS_MAX)
  }

  get #isKeyed(): boolean {
    return this.#options.key !== undefined
  }

  async #fetch(server: HostPort, serial: number, changed: Set<string>): Promise<void> {
    const { key, clock, timers, sourceFor } = this.#options
    // A serial that is behind is that of a peer that began anew: differences lead nowhere.
    const isBehind = this.#serial !== undefined && !isSerialAfter(serial, this.#serial)
    const soa = isBehind ? undefined : this.#soa
    let hasOthers = false
    const fetching = fetchPeerZone({
      primary: server,
      source: sourceFor?.(server.host) ?? '',
      key,
      soa,
      serial: this.#serial ?? 0,
      clock,
      timers,
      onOthers: () => {
        hasOthers = true
      },
    })
    this.#fetching = fetching
    const received = await fetching.received.finally(() => (this.#fetching = undefined))
    if (received.kind === 'whole') {
      await runInSlices(this.#zone.replace(received.records, changed), clock)
      this.#soa = apexSoa(received.records)
    } else if (received.kind === 'steps') {
      await runInSlices(this.#zone.advance(received.steps, changed), clock)
      this.#soa = received.soa
    } else if (received.serial !== this.#serial) {
      throw new TransferFault(`its zone is of serial ${received.serial}, older than before`)
    }
    if (hasOthers) this.#zone.noteOthers()
    this.#serial = received.serial
  }

  #takeFault(fault: TransferFault, serial: number): void {
    const isUnreached = fault.rcode === UNREACHED
    const isRefused = isUnreached || isRefusal(fault.rcode)
    if (!isRefused || this.#isKeyed || (this.#zone.count > 0 && isUnreached)) {
      this.#fail(`its zone can't be transferred: ${fault.message}`)
      return
    }
    const retryMs = isUnreached ? UNREACHED_RETRY_MS : TRANSFER_RETRY_MS
    this.#transferMs = this.#options.clock.monotonic() + retryMs
    this.#serial = serial
    this.#enter('v1', fault.message)
    this.#confirm()
  }

  #enter(generation: Generation, reason: string): void {
    if (this.#generation === generation) return
    this.#generation = generation
    const { log } = this.#options
    const { endpoints, serial } = this.status
    if (generation === 'v1') log.info(`peer ${this.#address} is asked for each host: ${reason}`)
    else log.info(`peer ${this.#address} is followed: ${endpoints} endpoints, serial ${serial}`)
  }

  async #askHost(rootHost: string): ReturnType<typeof askHostAt> {
    const server = this.#servers.first
    const { key, sourceFor, clock } = this.#options
    if (server === undefined) return { kind: 'failed', reason: 'it has no address' }
    const source = sourceFor?.(server.host) ?? ''
    const about = { key, source, signal: this.#aborting.signal, nowMs: () => clock.monotonic() }
    return askHostAt(server, this.#address, rootHost, about)
  }

  #noteAnswer(fault: string): void {
    if (this.#aborting.signal.aborted) return
    if (fault !== '') this.#failures++
    const nowMs = this.#options.clock.monotonic()
    const isDue = nowMs - this.#hostFaultMs >= HOST_FAULT_MS
    if (fault !== '' && fault !== this.#hostError && isDue) {
      this.#hostFaultMs = nowMs
      this.#options.log.warning(`peer ${this.#address}: a host can't be asked for: ${fault}`)
    }
    this.#hostError = fault
  }

  #confirm(): void {
    const { log, clock } = this.#options
    if (this.#error !== '') log.info(`peer ${this.#address} answers again`)
    this.#error = ''
    this.#failuresInRow = 0
    this.#hasAnswered = true
    this.#lastSeenMs = clock.monotonic()
    this.#lastSeenTimeMs = clock.now()
    if (this.#generation === 'v2') this.#zoneSeenMs = this.#lastSeenMs
  }

  #fail(reason: string): void {
    if (this.#aborting.signal.aborted) return
    this.#failures++
    this.#failuresInRow++
    if (reason === this.#error) return
    this.#error = reason
    const kept = this.status.endpoints
    const { log } = this.#options
    log.warning(`peer ${this.#address}: ${reason}; its ${kept} endpoints are kept for now`)
  }

  #report(hosts: ReadonlySet<string>): void {
    if (hosts.size === 0) return
    for (const listener of this.#listeners) void this.#guarded(() => listener(hosts))
  }
}
