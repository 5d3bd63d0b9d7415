import { writeMoment } from '../base/moment.ts'
import { runInSlices } from '../base/slices.ts'
import { type HostPort, printHostPort } from '../dns/host-port.ts'
import type { ResourceRecord } from '../dns/message/message.ts'
import { isSerialAfter } from '../dns/serial.ts'
import { type Guarded, guarding } from '../telemetry/guard.ts'
import { TransferFault, UNREACHED } from '../xfr/in/transfer-reader.ts'
import { ZoneRefresher } from '../xfr/zone-refresher.ts'
import { askHostAt } from './ask-host.ts'
import { apexSoa, askSerial } from './ask-serial.ts'
import { type CachedPeer, identityOf } from './cache/cached-peer.ts'
import { fetchPeerZone, isRefusal } from './fetch-peer-zone.ts'
import { HOST_BOUNDS_DEFAULT, HostPoll } from './host-poll.ts'
import { PeerClock } from './peer-clock.ts'
import type { Generation, SiteState } from './peer-endpoint.ts'
import { boundPeerLog } from './peer-log.ts'
import type { PeerFollowerOptions } from './peer-options.ts'
import { PeerServers } from './peer-servers.ts'
import { bareHost, type PeerStatus, printGeneration } from './peer-status.ts'
import { PeerZone } from './peer-zone.ts'
import type { SiteObservation } from './quorum/observation-codec.ts'
import { Refusals } from './refusals.ts'
import { SiteChange } from './site-change.ts'

/** Interval of SOA queries to a peer, and the longest interval while it does not answer. */
const POLL_MS = 1000
const POLL_MS_MAX = 5000
/** Random part of an interval, so that sites do not synchronise. */
const JITTER = 0.2
/** Minimum time between two polls, however many NOTIFYs arrive. */
export const NOTIFY_GAP_MS = 100
/** Time until the next transfer attempt after a refusal, and after a failed connection. */
const TRANSFER_RETRY_MS = 3 * 60_000
const UNREACHED_RETRY_MS = 15_000
/** Maximum pause after a transfer. It lasts as long as the transfer: a peer uses half of our time at most. */
const REST_MS_MAX = 15_000
/** Minimum time between two log lines about hosts that can't be queried. */
const HOST_FAULT_MS = 10_000

/** Receives the changed hosts, without their `*.`. */
type Listener = (hosts: ReadonlySet<string>) => void

/**
 * Follows one peer. It queries the SOA of the peer's zone kdrnt every second, and at once on a NOTIFY. If the serial is
 * new, it transfers the zone (v2). If the peer refuses transfers or exports no whole endpoints, it queries each wanted
 * host instead (v1). With a key, v1 is not used: the peer must allow the transfer.
 *
 *     SOA ─▶ same serial: confirmed
 *         ─▶ new ─▶ IXFR or AXFR ─▶ v2
 *                       └▶ refused, or no whole endpoints ─▶ v1, and again in three minutes
 *
 * The data of a silent peer is kept until the peer reports something else. The merge expires it.
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
  readonly #refresher: ZoneRefresher
  #generation: Generation | '' = ''
  #serial: number | undefined
  /** Serial of cached data, while there is no newer one. */
  #recalledSerial: number | undefined
  /** The peer has answered since this process started to query it. */
  #hasAnswered = false
  /** SOA of the version in #zone; undefined = the next transfer is a full one. */
  #soa: ResourceRecord | undefined
  #lastSeenMs = Number.NEGATIVE_INFINITY
  #lastSeenTimeMs = 0
  #lastAnswerMs = Number.NEGATIVE_INFINITY
  /** When the content of #zone was last confirmed. */
  #zoneSeenMs = Number.NEGATIVE_INFINITY
  #transferMs = Number.NEGATIVE_INFINITY
  #hostFaultMs = Number.NEGATIVE_INFINITY
  #error = ''
  readonly #siteChange: SiteChange
  readonly #clock = new PeerClock()
  /** Error of host queries while SOA queries succeed. */
  #hostError = ''
  #failures = 0
  #markAnswered: () => void = () => {}
  readonly #answered = new Promise<void>((resolve) => (this.#markAnswered = resolve))

  constructor(options: PeerFollowerOptions) {
    const { clock, timers, peer } = options
    this.#address = printHostPort(peer)
    const log = boundPeerLog(this.#address, options.log, clock)
    this.#options = { ...options, log }
    this.#servers = new PeerServers(peer, clock)
    this.#zone = new PeerZone(this.#address)
    this.#refusals = new Refusals({ peer: this.#address, log: options.log, clock })
    this.#siteChange = new SiteChange(this.#address, log)
    this.#guarded = guarding(log, `Polling peer ${this.#address}`)
    this.#refresher = new ZoneRefresher({
      clock,
      timers,
      guarded: this.#guarded,
      refresh: () => this.#poll(),
      pauseMs: (failures) => this.#pauseMs(failures),
      gapMs: NOTIFY_GAP_MS,
    })
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
    return {
      address: this.#address,
      keyName: this.#keyName,
      site: this.sites.join(),
      generation: this.#generation,
      lastSeenMs: this.#lastSeenMs,
      lastSeenTimeMs: this.#lastSeenTimeMs,
      serial: this.serial,
      isUp: this.isUp,
      error: this.#error || this.#hostError,
      failures: this.#failures,
      endpoints: this.#generation === 'v1' ? this.#hosts.count : this.#zone.count,
      refused: this.#refusals.count,
    }
  }

  get generation(): Generation | '' {
    return this.#generation
  }

  get lastSeenMs(): number {
    return this.#lastSeenMs
  }

  get lastSeenTimeMs(): number {
    return this.#lastSeenTimeMs
  }

  /**
   * When the peer last answered anything. A long transfer confirms the data only at its end, but meanwhile the peer is
   * not silent.
   */
  get lastAnswerMs(): number {
    return Math.max(this.#lastAnswerMs, this.#lastSeenMs)
  }

  get serial(): number | undefined {
    return this.#serial ?? this.#recalledSerial
  }

  get address(): string {
    return this.#address
  }

  /** The site that the peer is a nameserver of, as its zone shows; '' = several sites, or not known. */
  get ownSite(): string {
    return this.#generation === 'v1' ? '' : this.#zone.ownSite
  }

  /** The sites that it reports; the first sixteen of many. */
  get sites(): readonly string[] {
    return this.#generation === 'v1' ? this.#hosts.sites : this.#zone.sites
  }

  /** By how much its clock is ahead of ours; undefined = it does not report its time. */
  get clockAheadMs(): number | undefined {
    return this.#clock.aheadMs
  }

  get isUp(): boolean {
    return this.#hasAnswered && this.#error === '' && this.#hostError === ''
  }

  get identity(): string {
    return identityOf({ address: this.#address, keyName: this.#keyName })
  }

  get error(): string {
    return this.#error
  }

  get #keyName(): string {
    return this.#options.key?.nameText ?? ''
  }

  /** True if the peer answered for the host. Before that, an empty `siteStatesOf` means nothing. */
  hasAnsweredFor(rootHost: string): boolean {
    if (this.#generation === 'v1') return this.#hosts.isKnown(rootHost)
    return this.#generation === 'v2'
  }

  /** Resolves after the first query, whatever its result was. */
  answered(): Promise<void> {
    return this.#answered
  }

  settled(): Promise<void> {
    return this.#refresher.settled()
  }

  /** Call it before `start`. */
  recall({ generation, seenMs, zoneSeenMs, serial, ownSite, zone, hosts }: CachedPeer): void {
    this.#generation = generation
    this.#recalledSerial = serial
    this.#lastSeenMs = seenMs
    this.#lastSeenTimeMs = writeMoment(seenMs, this.#options.clock)
    this.#zoneSeenMs = zoneSeenMs
    this.#zone.recall(zone, ownSite)
    this.#siteChange.note(this.#zone.ownSite)
    for (const [rootHost, siteStates] of hosts) this.#hosts.recall(rootHost, siteStates)
  }

  /**
   * Returns the peer's data for `recall`; undefined = none. Hosts without users are included only
   * if they were seen since `sinceMs`, monotonic milliseconds.
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
    this.#refresher.start()
  }

  close(): void {
    this.#hosts.close()
    this.#refresher.stop()
    this.#listeners.clear()
  }

  notify(): void {
    this.#refresher.notify()
  }

  /** True if the peer has that address. */
  isAt(host: string): boolean {
    return this.#servers.has(host)
  }

  /** Adds a user of the host, so that a v1 peer is queried for it. `rootHost`: as in a PeerEndpoint. */
  want(rootHost: string): void {
    this.#hosts.want(rootHost)
  }

  forget(rootHost: string): void {
    this.#hosts.forget(rootHost)
  }

  /** Returns the unsubscribe function. */
  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Returns all hosts that the peer reports, without their `*.`. */
  hosts(): ReadonlySet<string> {
    const hosts = new Set(this.#zone.hosts())
    for (const host of this.#hosts.hosts()) hosts.add(bareHost(host))
    return hosts
  }

  /** Returns what the peer reports for the host and its wildcard. `host`: without `*.`. */
  siteStatesOf(host: string): readonly SiteState[] {
    if (this.#generation !== 'v1') return this.#readZone(host)
    const hosts = [host, `*.${host}`]
    const asked = hosts.map((rootHost) => this.#hosts.siteStatesOf(rootHost, this.#lastSeenMs))
    if (asked.every((siteStates) => siteStates === undefined)) {
      return this.#zone.count === 0 ? [] : this.#readZone(host)
    }
    return asked.flatMap((siteStates) => siteStates ?? [])
  }

  /**
   * Returns what the peer observed of addresses of other sites; only a zone transfer contains it.
   * `host`: without `*.`.
   */
  observationsOf(host: string): readonly SiteObservation[] {
    return this.#generation === 'v1' ? [] : this.#zone.observationsOf(host)
  }

  /** Number of observations of all hosts. */
  get observationCount(): number {
    return this.#generation === 'v1' ? 0 : this.#zone.observationCount
  }

  /** Returns why data for the host and its wildcard is refused; quotes the peer's text. */
  problemsOf(host: string): readonly string[] {
    return [...this.#refusals.of(host), ...this.#refusals.of(`*.${host}`)]
  }

  #readZone(host: string): readonly SiteState[] {
    const nowSeconds = this.#options.clock.now() / 1000
    const { siteStates, problems } = this.#zone.read(host, this.#zoneSeenMs, nowSeconds)
    this.#refusals.note(host, problems)
    return siteStates
  }

  #pauseMs(failures: number): number {
    const doubled = POLL_MS * 2 ** Math.min(failures, 10)
    return Math.min(doubled, POLL_MS_MAX) * (1 - JITTER * this.#options.random())
  }

  /** Returns true if the peer confirmed its zone. */
  async #poll(): Promise<boolean> {
    try {
      await this.#pollServer()
      return this.#error === ''
    } finally {
      this.#markAnswered()
    }
  }

  async #pollServer(): Promise<void> {
    const server = await this.#servers.resolve()
    if (server === undefined) {
      return this.#fail(`host ${this.#options.peer.host} does not exist`)
    }
    const { key, sourceFor } = this.#options
    const { signal } = this.#refresher
    const source = sourceFor?.(server.host) ?? ''
    const asked = await askSerial(server, { key, source, signal })
    if (signal.aborted) return
    if (typeof asked === 'string') {
      this.#servers.pass(server)
      return this.#fail(asked)
    }
    const { serial, timeSeconds } = asked
    if (this.#clock.note(timeSeconds, this.#options.clock)) this.#report(this.hosts())
    this.#lastAnswerMs = this.#options.clock.monotonic()
    if (serial !== this.#serial) await this.#takeSerial(server, serial)
    else if (this.#generation === 'v1' && this.#isTransferDue())
      await this.#transfer(server, serial)
    else this.#confirm()
    if (this.#generation === 'v1' && !this.#refresher.signal.aborted) this.#hosts.tick()
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
    } catch (error) {
      if (!(error instanceof TransferFault)) throw error
      if (this.#refresher.signal.aborted) return
      this.#soa = undefined
      this.#takeFault(error, serial)
      return
    } finally {
      this.#refresher.rest(Math.min(clock.monotonic() - startMs, REST_MS_MAX))
    }
    if (this.#refresher.signal.aborted) return
    const isWhole = !this.#zone.isOld || this.#isKeyed
    this.#transferMs = clock.monotonic() + TRANSFER_RETRY_MS
    if (isWhole && this.#generation === 'v1') {
      // The zone replaces what the peer answered host by host.
      for (const host of this.#hosts.hosts()) changed.add(bareHost(host))
      this.#hosts.clear()
      this.#refusals.clear()
    }
    this.#enter(isWhole ? 'v2' : 'v1', 'it exports no complete endpoints')
    this.#confirm()
    this.#report(changed)
  }

  get #isKeyed(): boolean {
    return this.#options.key !== undefined
  }

  async #fetch(server: HostPort, serial: number, changed: Set<string>): Promise<void> {
    const { key, clock, timers, sourceFor } = this.#options
    // A lower serial means that the peer started anew, so it has no differences from our version.
    const isBehind = this.#serial !== undefined && !isSerialAfter(serial, this.#serial)
    const soa = isBehind ? undefined : this.#soa
    let hasOthers = false
    const received = await fetchPeerZone({
      primary: server,
      source: sourceFor?.(server.host) ?? '',
      key,
      soa,
      serial: this.#serial ?? 0,
      clock,
      timers,
      signal: this.#refresher.signal,
      onOthers: () => {
        hasOthers = true
      },
    })
    if (received.kind === 'whole') {
      await runInSlices(this.#zone.replace(received.records, changed), clock)
      this.#soa = apexSoa(received.records)
    } else if (received.kind === 'steps') {
      await runInSlices(this.#zone.advance(received.steps, changed), clock)
      this.#soa = received.soa
    } else if (received.serial !== this.#serial) {
      throw new TransferFault(`its zone has serial ${received.serial}, older than before`)
    }
    if (hasOthers) this.#zone.noteOthers()
    this.#serial = received.serial
    this.#siteChange.note(this.#zone.ownSite)
  }

  #takeFault(fault: TransferFault, serial: number): void {
    const isUnreached = fault.rcode === UNREACHED
    const isRefused = isUnreached || isRefusal(fault.rcode)
    if (!isRefused || this.#isKeyed || (this.#zone.count > 0 && isUnreached)) {
      this.#fail(`its zone cannot be transferred: ${fault.message}`)
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
    this.#options.log.info(printGeneration(this.status, reason))
  }

  async #askHost(rootHost: string): ReturnType<typeof askHostAt> {
    const server = this.#servers.first
    const { key, sourceFor, clock } = this.#options
    if (server === undefined) return { kind: 'failed', reason: 'its name has no address' }
    const source = sourceFor?.(server.host) ?? ''
    const times = { nowMs: () => clock.monotonic(), nowSeconds: () => clock.now() / 1000 }
    const about = { key, source, signal: this.#refresher.signal, ...times }
    return askHostAt(server, this.#address, rootHost, about)
  }

  #noteAnswer(fault: string): void {
    if (this.#refresher.signal.aborted) return
    if (fault !== '') this.#failures++
    const nowMs = this.#options.clock.monotonic()
    const isDue = nowMs - this.#hostFaultMs >= HOST_FAULT_MS
    if (fault !== '' && fault !== this.#hostError && isDue) {
      this.#hostFaultMs = nowMs
      this.#options.log.warning(`peer ${this.#address}: query for a host failed: ${fault}`)
    }
    this.#hostError = fault
  }

  #confirm(): void {
    const { log, clock } = this.#options
    if (this.#error !== '') log.info(`peer ${this.#address} answers again`)
    this.#error = ''
    this.#hasAnswered = true
    this.#lastSeenMs = clock.monotonic()
    this.#lastSeenTimeMs = clock.now()
    if (this.#generation === 'v2') this.#zoneSeenMs = this.#lastSeenMs
  }

  #fail(reason: string): void {
    if (this.#refresher.signal.aborted) return
    this.#failures++
    if (reason === this.#error) return
    this.#error = reason
    const kept = this.status.endpoints
    this.#options.log.warning(`peer ${this.#address}: ${reason}; its ${kept} endpoints are kept`)
  }

  #report(hosts: ReadonlySet<string>): void {
    if (hosts.size === 0) return
    for (const listener of this.#listeners) void this.#guarded(() => listener(hosts))
  }
}
