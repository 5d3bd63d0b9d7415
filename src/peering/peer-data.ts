import type { Clock } from '../base/clock.ts'
import { runInSlices } from '../base/slices.ts'
import type { Logger } from '../base/telemetry/log.ts'
import type { ResourceRecord } from '../dns/message/message.ts'
import { isSerialAfter } from '../dns/serial.ts'
import { type Received, TransferFault } from '../xfr/in/transfer-reader.ts'
import { scanLog } from '../zone/zonefile/load.ts'
import { apexSoa } from './ask-serial.ts'
import type { CachedPeer } from './cache/cached-peer.ts'

import { HostPoll, type HostPollParts } from './host-poll.ts'
import type { PeerContact } from './peer-contact.ts'
import type { Generation, SiteState } from './peer-endpoint.ts'
import { bareHost } from './peer-status.ts'
import { PeerZone } from './peer-zone.ts'
import type { SiteObservation } from './quorum/observation-codec.ts'
import { Refusals } from './refusals.ts'
import { SiteChange } from './site-change.ts'

interface PeerDataParts extends Pick<HostPollParts, 'ask' | 'bounds' | 'onAnswer'> {
  /** Address of the peer. */
  readonly peer: string
  readonly contact: Pick<PeerContact, 'seenMs'>
  readonly clock: Clock
  readonly log: Logger
  /** Of refusals, which have a bound of their own. */
  readonly refusalLog: Logger
  /** Called when the peer's answer for a host, without its `*.`, changed. */
  readonly onChange: (host: string) => void
}

/**
 * What one peer reported: its zone (v2), or its answers for each wanted host (v1). It is kept until the peer reports
 * something else.
 */
export class PeerData {
  readonly polled: HostPoll
  readonly #parts: PeerDataParts
  readonly #zone: PeerZone
  readonly #refusals: Refusals
  readonly #siteChange: SiteChange
  #generation: Generation | '' = ''
  #serial: number | undefined
  /** Serial of cached data, while there is no newer one. */
  #recalledSerial: number | undefined
  /** SOA of the version in #zone; undefined = the next transfer is a full one. */
  #soa: ResourceRecord | undefined
  /** When the content of #zone was last confirmed, in monotonic milliseconds. */
  #zoneSeenMs = Number.NEGATIVE_INFINITY

  constructor(parts: PeerDataParts) {
    const { peer, clock, log, refusalLog, ask, bounds, onAnswer, onChange } = parts
    this.#parts = parts
    this.#zone = new PeerZone(peer)
    this.#refusals = new Refusals({ peer, log: refusalLog, clock })
    this.#siteChange = new SiteChange(peer, log)
    this.polled = new HostPoll({
      ...{ ask, bounds, onAnswer },
      nowMs: () => clock.monotonic(),
      onChange: (host) => onChange(bareHost(host)),
      onProblems: (host, problems) => this.#refusals.note(host, problems),
    })
  }

  get generation(): Generation | '' {
    return this.#generation
  }

  /** Serial of its zone; undefined = this process has not asked for it yet. */
  get serial(): number | undefined {
    return this.#serial
  }

  /** The same, or that of cached data. */
  get lastSerial(): number | undefined {
    return this.#serial ?? this.#recalledSerial
  }

  /** True if there is a version of its zone that a transfer can start from. */
  get hasVersion(): boolean {
    return this.#soa !== undefined
  }

  /** True if the zone lacks the whole endpoints of v2. */
  get isOld(): boolean {
    return this.#zone.isOld
  }

  /** Number of endpoints. */
  get count(): number {
    return this.#generation === 'v1' ? this.polled.count : this.#zone.count
  }

  /** Number of endpoints of its last transferred zone. */
  get zoneCount(): number {
    return this.#zone.count
  }

  /** Number of refused endpoints among those that were read. */
  get refused(): number {
    return this.#refusals.count
  }

  /** The site that the peer is a nameserver of, as its zone shows; '' = several sites, or not known. */
  get ownSite(): string {
    return this.#generation === 'v1' ? '' : this.#zone.ownSite
  }

  /** The sites that it reports; the first sixteen of many. */
  get sites(): readonly string[] {
    return this.#generation === 'v1' ? this.polled.sites : this.#zone.sites
  }

  /** Number of observations of all hosts. */
  get observationCount(): number {
    return this.#generation === 'v1' ? 0 : this.#zone.observationCount
  }

  /** True if the peer answered for the host. Before that, an empty `siteStatesOf` means nothing. */
  hasAnsweredFor(rootHost: string): boolean {
    if (this.#generation === 'v1') return this.polled.isKnown(rootHost)
    return this.#generation === 'v2'
  }

  /** Returns all hosts that the peer reports, without their `*.`. */
  hosts(): ReadonlySet<string> {
    const hosts = new Set(this.#zone.hosts())
    for (const host of this.polled.hosts()) hosts.add(bareHost(host))
    return hosts
  }

  /** Returns what the peer reports for the host and its wildcard. `host`: without `*.`. */
  siteStatesOf(host: string): readonly SiteState[] {
    if (this.#generation !== 'v1') return this.#readZone(host)
    const { seenMs } = this.#parts.contact
    const asked = [host, `*.${host}`].map((one) => this.polled.siteStatesOf(one, seenMs))
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

  /** Returns why data for the host and its wildcard is refused; quotes the peer's text. */
  problemsOf(host: string): readonly string[] {
    return [...this.#refusals.of(host), ...this.#refusals.of(`*.${host}`)]
  }

  recall({ generation, zoneSeenMs, serial, ownSite, zone, hosts }: CachedPeer): void {
    this.#generation = generation
    this.#recalledSerial = serial
    this.#zoneSeenMs = zoneSeenMs
    this.#zone.recall(zone, ownSite)
    this.#siteChange.note(this.#zone.ownSite)
    for (const [rootHost, siteStates] of hosts) this.polled.recall(rootHost, siteStates)
  }

  /**
   * Returns the data for `recall`; undefined = none. Hosts without users are included only if they were seen since
   * `sinceMs`, monotonic milliseconds.
   */
  keep(sinceMs: number): Omit<CachedPeer, 'address' | 'keyName'> | undefined {
    if (this.#generation === '') return undefined
    const { seenMs } = this.#parts.contact
    return {
      generation: this.#generation,
      seenMs,
      zoneSeenMs: this.#zoneSeenMs,
      serial: this.lastSerial,
      ownSite: this.#zone.ownSite,
      zone: this.#zone.exported,
      hosts: this.polled.exported(sinceMs, seenMs),
    }
  }

  /** Returns false if it had that generation already. */
  enter(generation: Generation): boolean {
    const isNew = generation !== this.#generation
    this.#generation = generation
    return isNew
  }

  /** The zone replaces what the peer answered host by host: returns the hosts of those answers, without their `*.`. */
  dropPolled(): ReadonlySet<string> {
    const hosts = new Set([...this.polled.hosts()].map(bareHost))
    this.polled.clear()
    this.#refusals.clear()
    return hosts
  }

  /** Notes the serial of a version that is not transferred. */
  skipTo(serial: number): void {
    this.#serial = serial
  }

  /** The next transfer is a full one. */
  dropVersion(): void {
    this.#soa = undefined
  }

  /** Returns the SOA that differences for `serial` can start from; undefined = none. */
  versionBefore(serial: number): ResourceRecord | undefined {
    // A lower serial means that the peer started anew, so it has no differences from our version.
    const isBehind = this.#serial !== undefined && !isSerialAfter(serial, this.#serial)
    return isBehind ? undefined : this.#soa
  }

  /**
   * Stores a transferred version, and adds its changed hosts to `changed`. `hasOthers`: the zone has addresses and
   * aliases, as that of every peer. Throws a TransferFault for an older version.
   */
  async receive(received: Received, hasOthers: boolean, changed: Set<string>): Promise<void> {
    const { clock } = this.#parts
    if (received.kind === 'whole') {
      const { records, faults } = await runInSlices(scanLog(received.records.finish()), clock)
      if (faults[0] !== undefined) throw new TransferFault(faults[0].print())
      await runInSlices(this.#zone.replace(records, changed), clock)
      this.#soa = apexSoa(records)
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

  /** The peer has just confirmed its data. */
  confirm(): void {
    if (this.#generation === 'v2') this.#zoneSeenMs = this.#parts.contact.seenMs
  }

  #readZone(host: string): readonly SiteState[] {
    const nowSeconds = this.#parts.clock.now() / 1000
    const { siteStates, problems } = this.#zone.read(host, this.#zoneSeenMs, nowSeconds)
    this.#refusals.note(host, problems)
    return siteStates
  }
}
