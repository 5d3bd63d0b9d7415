import { Random } from '../../../src/base/random.ts'
import type { Timers } from '../../../src/base/timers.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { printName, scanName } from '../../../src/dns/name/name.ts'
import { printAddress } from '../../../src/dns/text/address.ts'
import type { DnsRecord } from '../../../src/dnsrecord/dns-record.ts'
import { HEALTH_CHECK_DEFAULTS } from '../../../src/dnsrecord/health-check.ts'
import { packRecord } from '../../../src/dnsrecord/pack.ts'
import { type RecordSource, StoredRecord } from '../../../src/dnsrecord/record-source.ts'
import { scanHost } from '../../../src/dnsrecord/validate/names.ts'
import { AddressHealth, type Finding } from '../../../src/health/address-health.ts'
import { Findings } from '../../../src/health/findings.ts'
import { LocalExporter } from '../../../src/peering/local-exporter.ts'
import { MergedSource } from '../../../src/peering/merged-source.ts'
import { PeerFollower } from '../../../src/peering/peer.ts'
import type { Generation, PeerEndpoint, SiteState } from '../../../src/peering/peer-endpoint.ts'
import { HealthQuorum, QuorumMemory } from '../../../src/peering/quorum/health-quorum.ts'
import type { SiteObservation } from '../../../src/peering/quorum/observation-codec.ts'
import type { OwnerSet } from '../../../src/publish/owner-sets.ts'
import type { ZoneSettings } from '../../../src/publish/owner-settings.ts'
import { RecordZone } from '../../../src/publish/record-zone.ts'
import { createLogger, type Logger } from '../../../src/telemetry/log.ts'
import { SimulatedNetwork } from './simulated-network.ts'

export const HOST = 'app.k.example.com'
const APEX = scanName('k.example.com.')!
const RECORD = 'default/app'
/** Longest pause between two polls of a silent peer, in seconds. */
const POLL_S_MAX = 5
const EPOCH_S = 1_790_000_000

export interface CheckTimes {
  /** Seconds between two probes. */
  readonly probeS: number
  readonly failures: number
  readonly successes: number
}

/** From a fault to the last answer with a dead address, and from a recovery to the first one with it again. */
export function boundsOf({ probeS, failures, successes }: CheckTimes) {
  return { downS: (failures + 2) * probeS + 10, upS: (successes + 1) * probeS + 10 }
}

/** Health of one address as the probes of one site find it. */
export class ProbedAddress {
  health: 'up' | 'down' | 'unknown' = 'unknown'
  sinceS = 0
  #failures = 0
  #successes = 0

  note(isReached: boolean, nowS: number, { failures, successes }: CheckTimes): void {
    this.#failures = isReached ? 0 : this.#failures + 1
    this.#successes = isReached ? this.#successes + 1 : 0
    const isUp = isReached && (this.health !== 'down' || this.#successes >= successes)
    const next = isUp ? 'up' : this.#failures > failures ? 'down' : this.health
    if (next === this.health) return
    this.health = next
    this.sinceS = nowS
  }
}

/** What a poll of a peer received. */
interface Received {
  readonly endpoint: PeerEndpoint
  readonly observations: readonly SiteObservation[]
}

/** A peer as one site follows it. */
class SimulatedPeer extends PeerFollower {
  readonly number: number
  readonly #network: SimulatedSites
  readonly #generation: Generation
  received: Received | undefined
  heardMs = Number.NEGATIVE_INFINITY
  pollS = 0
  failures = 0
  #notify: (hosts: ReadonlySet<string>) => void = () => {}

  constructor(number: number, network: SimulatedSites, log: Logger) {
    const timers: Timers = { after: () => () => {}, every: () => () => {} }
    const clock = { monotonic: () => network.nowS * 1000, now: () => 0 }
    const peer = { host: nameOf(number), port: 53 }
    super({ peer, clock, timers, log, random: () => 0 })
    this.number = number
    this.#network = network
    this.#generation = network.generations[number]!
  }

  override get lastSeenMs(): number {
    return this.heardMs
  }
  override get lastAnswerMs(): number {
    return this.heardMs
  }
  override get ownSite(): string {
    return this.received === undefined || this.#generation === 'v1' ? '' : nameOf(this.number)
  }
  override hosts(): ReadonlySet<string> {
    return new Set(this.received === undefined ? [] : [HOST])
  }
  override subscribe(listener: (hosts: ReadonlySet<string>) => void): () => void {
    this.#notify = listener
    return () => {}
  }
  override siteStatesOf(host: string): readonly SiteState[] {
    if (this.received === undefined || host !== HOST) return []
    const { endpoint } = this.received
    const about = { site: endpoint.site, exporter: this.address, isOwn: true, rootHost: HOST }
    return [{ ...about, endpoints: [endpoint], seenMs: this.heardMs, generation: this.#generation }]
  }
  override observationsOf(): readonly SiteObservation[] {
    return this.received?.observations ?? []
  }

  receive(received: Received): void {
    const isSame = JSON.stringify(received) === JSON.stringify(this.received)
    this.received = received
    this.heardMs = this.#network.nowS * 1000
    if (!isSame) this.#notify(new Set([HOST]))
  }
}

/** A site: its nameserver, and one gateway whose address is `192.0.2.N`. */
export class SimulatedSite {
  readonly number: number
  readonly #network: SimulatedSites
  /** Difference between the wall clock of this site and the true time. */
  readonly #skewS: number
  #probed = new Map<number, ProbedAddress>()
  #watched: readonly number[] = []
  #peers: readonly SimulatedPeer[] = []
  #findings: Findings | undefined
  #health = new AddressHealth()
  #source: MergedSource | undefined
  #check: () => void = () => {}
  quorum!: HealthQuorum
  answers: readonly string[] = []
  isUp = true
  isGatewayUp = true

  constructor(number: number, skewS: number, network: SimulatedSites) {
    this.number = number
    this.#skewS = skewS
    this.#network = network
  }

  get name(): string {
    return nameOf(this.number)
  }

  /** What the probes of this site find of the address of a site; '' = it does not probe the address. */
  foundOf(number: number): string {
    return this.#probed.get(number)?.health ?? ''
  }

  heard(number: number): boolean {
    const peer = this.#peers.find((one) => one.number === number)
    return peer !== undefined && this.#network.nowS * 1000 - peer.heardMs < 8000
  }

  /** Starts the nameserver. `keeps`: findings and endpoints survive, as with `probe FILE` and `peer-cache FILE`. */
  start(keeps: boolean): void {
    const network = this.#network
    const log = createLogger(
      this.name,
      (text) => void network.log.push(`${network.nowS} s ${text}`),
      () => false,
    )
    this.#source?.close()
    this.#watched = []
    this.isUp = true
    if (!keeps) this.#probed = new Map()
    const before = this.#peers
    const others = network.numbers.filter((other) => other !== this.number)
    this.#peers = others.map((other) => {
      const peer = new SimulatedPeer(other, network, log)
      const known = keeps ? before.find(({ number }) => number === other) : undefined
      if (known?.received !== undefined) {
        peer.received = known.received
        peer.heardMs = known.heardMs
      }
      return peer
    })
    const clock = {
      monotonic: () => network.nowS * 1000,
      now: () => (EPOCH_S + network.nowS + this.#skewS) * 1000,
    }
    this.#health = new AddressHealth()
    this.#findings = new Findings(this.#health)
    const own = sourceOf(new StoredRecord(RECORD, packRecord(recordOf(this.number, network))))
    this.quorum = new HealthQuorum({
      site: this.name,
      peers: this.#peers,
      quorum: 0,
      holdDownMs: 0,
      memory: new QuorumMemory(clock),
      observer: {
        watch: (_key, leaves) => {
          this.#watched = leaves.map(({ address }) => Number(address.split('.')[3]) - 1)
        },
        close: () => {},
      },
      clock,
      log,
    })
    const timers: Timers = {
      after: () => () => {},
      every: (_ms, callback) => {
        this.#check = callback
        return () => {}
      },
    }
    const source = new MergedSource({
      own,
      health: this.#health,
      allows: () => true,
      site: this.name,
      exporter: new LocalExporter(this.name, clock),
      peers: this.#peers,
      expiryMs: 24 * 3600 * 1000,
      quorum: this.quorum,
      clock,
      timers,
      log,
    })
    this.#source = source
    this.#writeFindings()
    void source.ready()
    this.#serve(source)
  }

  /** Builds the RRsets of the records, as a server does. */
  #serve(source: MergedSource): void {
    const take = (set: OwnerSet | undefined): void => {
      this.answers = (set?.rdata ?? []).map((rdata) => printAddress(rdata, 1)).sort()
    }
    const isHost = (owner: Uint8Array, type: number): boolean => {
      return type === RRType.A && printName(owner) === `${HOST}.`
    }
    const common = { type: RRType.NS, ttlSeconds: 60, setIdentifier: '', weight: undefined }
    const zone = new RecordZone({
      apex: APEX,
      isLocalForm: false,
      fixed: [],
      defaultNs: { owner: APEX, ...common, codes: [], isDefault: false, rdata: [APEX] },
      sink: {
        put: (owner, set) => isHost(owner, set.type) && take(set),
        remove: (owner, type) => isHost(owner, type) && take(undefined),
        declare: () => {},
      },
      health: source.health,
      settings: this.#network.settings,
      onConflict: (text) => void this.#network.log.push(`${this.name} ${text}`),
      onOut: () => {},
    })
    zone.apply([...source.records()].map((after) => ({ before: undefined, after })))
    source.subscribe((changes) => zone.apply(changes))
    source.health.subscribe((keys) => {
      for (const key of keys) {
        const record = source.find(key)
        if (record !== undefined) zone.apply([{ before: record, after: record }])
      }
    })
  }

  /** Runs one second. */
  step(): void {
    const { nowS, times } = this.#network
    for (const peer of this.#peers) if (nowS >= peer.pollS) this.#poll(peer)
    for (const other of [this.number, ...this.#watched]) {
      if ((nowS + 3 * other + this.number) % times.probeS !== 0) continue
      const probed = this.#probed.get(other) ?? new ProbedAddress()
      this.#probed.set(other, probed)
      probed.note(this.#network.reaches(this.number, other), nowS, times)
    }
    this.#writeFindings()
    this.#check()
  }

  #writeFindings(): void {
    for (const number of this.#network.numbers) {
      const { health = 'unknown', sinceS = 0 } = this.#probed.get(number) ?? {}
      const observed = number === this.number ? undefined : EPOCH_S + this.#skewS + sinceS
      const known: Finding | undefined =
        health === 'unknown'
          ? undefined
          : { recordKey: RECORD, address: addressOf(number), health, observedSeconds: observed }
      this.#findings!.set(String(number), known)
    }
    this.#health.publish()
  }

  #poll(peer: SimulatedPeer): void {
    const network = this.#network
    if (!network.hears(this.number, peer.number)) {
      peer.pollS = network.nowS + Math.min(POLL_S_MAX, 2 ** ++peer.failures)
      return
    }
    peer.failures = 0
    peer.pollS = network.nowS + 1
    peer.receive(network.sites[peer.number]!.exported())
  }

  /** What the site exports. A site of generation v1 has neither a name nor health. */
  exported(): Received {
    const network = this.#network
    const isOld = network.generations[this.number] === 'v1'
    const own = this.#probed.get(this.number)
    const site = isOld ? `${this.name}:53` : this.name
    const health = isOld ? 'unknown' : (own?.health ?? 'unknown')
    const sinceSeconds = isOld ? 0 : EPOCH_S + this.#skewS + (own?.sinceS ?? 0)
    const { weight } = network
    const setIdentifier = isOld || weight === undefined ? '' : this.name
    const common = { rootHost: HOST, dnsName: HOST, recordType: 'A', ttlSeconds: 60 }
    const endpoint: PeerEndpoint = {
      ...{ site, ...common, setIdentifier, weight, geoCodes: [], isDefault: false },
      ...{ targets: [addressOf(this.number)], health, sinceSeconds },
    }
    const others = isOld ? [] : [...this.#probed].filter(([number]) => number !== this.number)
    const observations = others.flatMap(([number, { health, sinceS }]): SiteObservation[] => {
      if (health === 'unknown') return []
      const sinceSeconds = EPOCH_S + this.#skewS + sinceS
      return [{ site: this.name, address: addressOf(number), health, sinceSeconds }]
    })
    return { endpoint, observations }
  }
}

function sourceOf(record: StoredRecord): RecordSource {
  return {
    records: () => [record],
    find: (key) => (key === record.key ? record : undefined),
    recordCount: 1,
    problems: () => [],
    unreadyReason: () => '',
    subscribe: () => () => {},
  }
}

function recordOf(number: number, { weight }: SimulatedSites): DnsRecord {
  const owner = scanHost(HOST)!
  const setIdentifier = weight === undefined ? '' : nameOf(number)
  const rdata = [Uint8Array.of(192, 0, 2, number + 1)]
  const steering = { setIdentifier, weight, codes: [], isDefault: false }
  return {
    ...{ namespace: 'default', name: 'app', zoneLabel: '', rootHost: owner },
    ...{ isWildcardHost: false, isAggregate: false, createdSeconds: 0 },
    endpoints: [{ owner, type: RRType.A, ttlSeconds: 60, ...steering, rdata }],
    healthCheck: HEALTH_CHECK_DEFAULTS,
  }
}

export interface SimulatedSitesParts {
  readonly seed: number
  /** One per site: v1 = a peer that only exports, without health. */
  readonly generations: readonly Generation[]
  readonly times: CheckTimes
  readonly weight?: number | undefined
  readonly settings?: ZoneSettings | undefined
  readonly skewsS?: readonly number[]
}

/** Sites on a network whose links can be cut, with a clock of their own. Equal seeds run equally. */
export class SimulatedSites extends SimulatedNetwork {
  readonly random: Random
  readonly numbers: readonly number[]
  readonly generations: readonly Generation[]
  readonly times: CheckTimes
  readonly weight: number | undefined
  readonly settings: ZoneSettings | undefined
  readonly sites: readonly SimulatedSite[]
  readonly log: string[] = []
  nowS = 0
  constructor({ seed, generations, times, weight, settings, skewsS = [] }: SimulatedSitesParts) {
    super()
    this.random = new Random(seed)
    this.generations = generations
    this.times = times
    this.weight = weight
    this.settings = settings
    this.numbers = generations.map((_, i) => i)
    const skewOf = (number: number): number => skewsS[number] ?? this.random.below(5) - 2
    this.sites = this.numbers.map((number) => new SimulatedSite(number, skewOf(number), this))
    for (const site of this.sites) site.start(false)
  }

  /** Runs so many seconds. `check`: called after each. */
  run(seconds: number, check: () => void = () => {}): void {
    for (let i = 0; i < seconds; i++) {
      this.nowS++
      for (const site of this.sites) if (site.isUp) site.step()
      check()
    }
  }
}

export function addressOf(number: number): string {
  return `192.0.2.${number + 1}`
}

export function nameOf(number: number): string {
  return `site${number}`
}
