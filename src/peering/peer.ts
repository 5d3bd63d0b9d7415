import { type Guarded, guarding } from '../base/telemetry/guard.ts'
import { type HostPort, printHostPort } from '../dns/host-port.ts'
import { TransferFault, UNREACHED } from '../xfr/in/transfer-reader.ts'
import { ZoneRefresher } from '../xfr/zone-refresher.ts'
import { askHostAt } from './ask-host.ts'
import { askSerial } from './ask-serial.ts'
import { type CachedPeer, identityOf } from './cache/cached-peer.ts'
import { fetchPeerZone, isRefusal } from './fetch-peer-zone.ts'
import { HOST_BOUNDS_DEFAULT } from './host-poll.ts'
import { PeerClock } from './peer-clock.ts'
import { PeerContact } from './peer-contact.ts'
import { PeerData } from './peer-data.ts'
import type { Generation, SiteState } from './peer-endpoint.ts'
import { boundPeerLog } from './peer-log.ts'
import type { PeerFollowerOptions } from './peer-options.ts'
import { PeerServers } from './peer-servers.ts'
import { type PeerStatus, printGeneration } from './peer-status.ts'
import type { SiteObservation } from './quorum/observation-codec.ts'

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
 * The data of a silent peer is kept. The merge expires it.
 */
export class PeerFollower {
  readonly #options: PeerFollowerOptions
  readonly #address: string
  readonly #contact: PeerContact
  readonly #data: PeerData
  readonly #clock = new PeerClock()
  readonly #guarded: Guarded
  readonly #servers: PeerServers
  readonly #listeners = new Set<Listener>()
  readonly #refresher: ZoneRefresher
  /** When a peer that is followed as v1 is asked for its zone again, in monotonic milliseconds. */
  #transferMs = Number.NEGATIVE_INFINITY
  #markAnswered: () => void = () => {}
  readonly #answered = new Promise<void>((resolve) => (this.#markAnswered = resolve))

  constructor(options: PeerFollowerOptions) {
    const { clock, timers, peer } = options
    this.#address = printHostPort(peer)
    const log = boundPeerLog(this.#address, options.log, clock)
    this.#options = { ...options, log }
    this.#servers = new PeerServers(peer, clock)
    this.#contact = new PeerContact({ peer: this.#address, log, clock })
    this.#guarded = guarding(log, `Polling peer ${this.#address}`)
    this.#refresher = new ZoneRefresher({
      clock,
      timers,
      guarded: this.#guarded,
      refresh: () => this.#poll(),
      pauseMs: (failures) => this.#pauseMs(failures),
      gapMs: NOTIFY_GAP_MS,
    })
    this.#data = new PeerData({
      ...{ peer: this.#address, contact: this.#contact, clock, log },
      refusalLog: options.log,
      ask: (host) => this.#askHost(host),
      bounds: options.hostBounds ?? HOST_BOUNDS_DEFAULT,
      onAnswer: (fault) => {
        if (!this.#refresher.signal.aborted) this.#contact.noteHost(fault)
      },
      onChange: (host) => this.#report(new Set([host])),
    })
  }

  get status(): PeerStatus {
    const { error, hostError, failures } = this.#contact
    return {
      address: this.#address,
      keyName: this.#keyName,
      site: this.sites.join(),
      generation: this.generation,
      lastSeenMs: this.lastSeenMs,
      lastSeenTimeMs: this.lastSeenTimeMs,
      serial: this.serial,
      isUp: this.isUp,
      error: error || hostError,
      failures,
      endpoints: this.#data.count,
      refused: this.#data.refused,
    }
  }

  get generation(): Generation | '' {
    return this.#data.generation
  }

  get lastSeenMs(): number {
    return this.#contact.seenMs
  }

  get lastSeenTimeMs(): number {
    return this.#contact.seenTimeMs
  }

  /** When it last answered anything: see `PeerContact`. */
  get lastAnswerMs(): number {
    return this.#contact.answerMs
  }

  get serial(): number | undefined {
    return this.#data.lastSerial
  }

  get address(): string {
    return this.#address
  }

  // What it reports: see `PeerData`.
  get ownSite(): string {
    return this.#data.ownSite
  }

  get sites(): readonly string[] {
    return this.#data.sites
  }

  get observationCount(): number {
    return this.#data.observationCount
  }

  /** By how much its clock is ahead of ours; undefined = it does not report its time. */
  get clockAheadMs(): number | undefined {
    return this.#clock.aheadMs
  }

  get isUp(): boolean {
    return this.#contact.isUp
  }

  get identity(): string {
    return identityOf({ address: this.#address, keyName: this.#keyName })
  }

  get error(): string {
    return this.#contact.error
  }

  get #keyName(): string {
    return this.#options.key?.nameText ?? ''
  }

  get #isKeyed(): boolean {
    return this.#options.key !== undefined
  }

  // What it reports: see `PeerData`.
  hasAnsweredFor(rootHost: string): boolean {
    return this.#data.hasAnsweredFor(rootHost)
  }

  hosts(): ReadonlySet<string> {
    return this.#data.hosts()
  }

  siteStatesOf(host: string): readonly SiteState[] {
    return this.#data.siteStatesOf(host)
  }

  observationsOf(host: string): readonly SiteObservation[] {
    return this.#data.observationsOf(host)
  }

  problemsOf(host: string): readonly string[] {
    return this.#data.problemsOf(host)
  }

  /** Resolves after the first query, whatever its result was. */
  answered(): Promise<void> {
    return this.#answered
  }

  settled(): Promise<void> {
    return this.#refresher.settled()
  }

  /** Call it before `start`. */
  recall(cached: CachedPeer): void {
    this.#contact.recall(cached.seenMs)
    this.#data.recall(cached)
  }

  /** Returns the peer's data for `recall`; undefined = none. `sinceMs`: as in `PeerData`. */
  keep(sinceMs: number): CachedPeer | undefined {
    const data = this.#data.keep(sinceMs)
    return data && { address: this.#address, keyName: this.#keyName, ...data }
  }

  start(): void {
    this.#refresher.start()
  }

  close(): void {
    this.#data.polled.close()
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
    this.#data.polled.want(rootHost)
  }

  forget(rootHost: string): void {
    this.#data.polled.forget(rootHost)
  }

  /** Returns the unsubscribe function. */
  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #pauseMs(failures: number): number {
    const doubled = POLL_MS * 2 ** Math.min(failures, 10)
    return Math.min(doubled, POLL_MS_MAX) * (1 - JITTER * this.#options.random())
  }

  /** Returns true if the peer confirmed its zone. */
  async #poll(): Promise<boolean> {
    try {
      await this.#pollServer()
      return this.error === ''
    } finally {
      this.#markAnswered()
    }
  }

  async #pollServer(): Promise<void> {
    const server = await this.#servers.resolve()
    if (server === undefined) {
      return this.#fail(`host ${this.#options.peer.host} does not exist`)
    }
    const { key, sourceFor, clock } = this.#options
    const { signal } = this.#refresher
    const source = sourceFor?.(server.host) ?? ''
    const asked = await askSerial(server, { key, source, signal })
    if (signal.aborted) return
    if (typeof asked === 'string') {
      this.#servers.pass(server)
      return this.#fail(asked)
    }
    const { serial, timeSeconds } = asked
    if (this.#clock.note(timeSeconds, clock)) this.#report(this.hosts())
    this.#contact.noteAnswer()
    if (this.#noteSerial(serial)) await this.#transfer(server, serial)
    else this.#confirm()
    if (this.generation === 'v1' && !signal.aborted) this.#data.polled.tick()
  }

  /** Notes the serial that the peer has now. Returns true if its zone must be transferred. */
  #noteSerial(serial: number): boolean {
    const isNew = serial !== this.#data.serial
    if (this.generation !== 'v1') return isNew
    if (isNew) this.#data.polled.hurry()
    if (this.#options.clock.monotonic() >= this.#transferMs) return true
    if (isNew && this.#data.hasVersion) return true
    this.#data.skipTo(serial)
    return false
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
      this.#data.dropVersion()
      this.#takeFault(error, serial)
      return
    } finally {
      this.#refresher.rest(Math.min(clock.monotonic() - startMs, REST_MS_MAX))
    }
    if (this.#refresher.signal.aborted) return
    const isWhole = !this.#data.isOld || this.#isKeyed
    this.#transferMs = clock.monotonic() + TRANSFER_RETRY_MS
    if (isWhole && this.generation === 'v1')
      for (const host of this.#data.dropPolled()) changed.add(host)
    this.#enter(isWhole ? 'v2' : 'v1', 'it exports no complete endpoints')
    this.#confirm()
    this.#report(changed)
  }

  async #fetch(server: HostPort, serial: number, changed: Set<string>): Promise<void> {
    const { key, clock, timers, sourceFor } = this.#options
    let hasOthers = false
    const received = await fetchPeerZone({
      primary: server,
      source: sourceFor?.(server.host) ?? '',
      key,
      soa: this.#data.versionBefore(serial),
      serial: this.#data.serial ?? 0,
      clock,
      timers,
      signal: this.#refresher.signal,
      onOthers: () => {
        hasOthers = true
      },
    })
    await this.#data.receive(received, hasOthers, changed)
  }

  #takeFault(fault: TransferFault, serial: number): void {
    const isUnreached = fault.rcode === UNREACHED
    const isRefused = isUnreached || isRefusal(fault.rcode)
    if (!isRefused || this.#isKeyed || (this.#data.zoneCount > 0 && isUnreached)) {
      this.#fail(`its zone cannot be transferred: ${fault.message}`)
      return
    }
    const retryMs = isUnreached ? UNREACHED_RETRY_MS : TRANSFER_RETRY_MS
    this.#transferMs = this.#options.clock.monotonic() + retryMs
    this.#data.skipTo(serial)
    this.#enter('v1', fault.message)
    this.#confirm()
  }

  #enter(generation: Generation, reason: string): void {
    if (!this.#data.enter(generation)) return
    this.#options.log.info(printGeneration(this.status, reason), 'peer-generation')
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

  #confirm(): void {
    this.#contact.confirm()
    this.#data.confirm()
  }

  #fail(reason: string): void {
    if (!this.#refresher.signal.aborted) this.#contact.fail(reason, this.#data.count)
  }

  #report(hosts: ReadonlySet<string>): void {
    if (hosts.size === 0) return
    for (const listener of this.#listeners) void this.#guarded(() => listener(hosts))
  }
}
