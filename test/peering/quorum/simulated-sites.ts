import { Random } from '../../../src/base/random.ts'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import type { Timers } from '../../../src/base/timers.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { printName, scanName } from '../../../src/dns/name/name.ts'
import { printAddress, scanAddress } from '../../../src/dns/text/address.ts'
import { AddressHealth, type Finding } from '../../../src/health/address-health.ts'
import { NO_DRAINS } from '../../../src/health/drain/drain.ts'
import { Findings } from '../../../src/health/findings.ts'
import { HealthTable } from '../../../src/health/health-table.ts'
import { LocalExporter } from '../../../src/peering/local-exporter.ts'
import { MergedSource } from '../../../src/peering/merged-source.ts'
import type { Generation, PeerEndpoint } from '../../../src/peering/peer-endpoint.ts'
import { HealthQuorum } from '../../../src/peering/quorum/health-quorum.ts'
import type { SiteObservation } from '../../../src/peering/quorum/observation-codec.ts'
import { QuorumMemory } from '../../../src/peering/quorum/quorum-memory.ts'
import { toPeerEndpoints } from '../../../src/peering/to-peer-endpoint.ts'
import type { OwnerSet, ZoneSettings } from '../../../src/publish/build/owner-set.ts'
import { RecordZone } from '../../../src/publish/build/record-zone.ts'
import type { DnsRecord } from '../../../src/records/dns-record.ts'
import { HEALTH_CHECK_DEFAULTS } from '../../../src/records/health-check.ts'
import { packRecord, unpackRecord } from '../../../src/records/pack.ts'
import { type RecordSource, StoredRecord } from '../../../src/records/record-source.ts'
import { scanHost } from '../../../src/records/validate/names.ts'
import { targetsOf } from '../../support/peer-text.ts'
import { addressOf, type Family, idOf, siteOf } from './simulated-addresses.ts'
import { SimulatedDrains } from './simulated-drains.ts'
import { SimulatedNetwork } from './simulated-network.ts'
import { HOST, IDLE, nameOf, type Received, type Sent, SimulatedPeer } from './simulated-peer.ts'
import { type CheckTimes, ProbedAddress } from './simulated-probes.ts'

const APEX = scanName('k.example.com.')!
const RECORD = 'default/app'
/** Longest pause between two polls of a silent peer, in seconds. */
const POLL_S_MAX = 5
const EPOCH_S = 1_790_000_000

/** What survives a restart of a nameserver. */
export interface Kept {
  /** As with `probe FILE`. */
  readonly findings: boolean
  /** Of peers, and the decisions about their addresses: as with `peer-cache FILE`. */
  readonly endpoints: boolean
}

/** A site: its nameserver, and one gateway with an address `192.0.2.N`, `2001:db8::N` or both. */
export class SimulatedSite {
  readonly number: number
  /** Of its addresses: see `addressOf`. */
  readonly ids: readonly number[]
  readonly #network: SimulatedSites
  /** Difference between the wall clock of this site and the true time. */
  readonly #skewS: number
  #probed = new Map<number, ProbedAddress>()
  #watched: readonly number[] = []
  #peers: readonly SimulatedPeer[] = []
  #findings: Findings | undefined
  #health = new AddressHealth()
  readonly #drains = new SimulatedDrains()
  #table: HealthTable | undefined
  #own!: StoredRecord
  #exported: Sent | undefined
  #source: MergedSource | undefined
  #check: () => void = () => {}
  #memory: QuorumMemory | undefined
  quorum!: HealthQuorum
  /** Of type A, and of type AAAA. */
  answers: readonly string[] = []
  answers6: readonly string[] = []
  isUp = true
  isGatewayUp = true

  constructor(number: number, skewS: number, network: SimulatedSites) {
    this.number = number
    this.ids = (network.families[number] ?? [4]).map((family) => idOf(number, family))
    this.#skewS = skewS
    this.#network = network
  }

  get name(): string {
    return nameOf(this.number)
  }

  /** What the probes of this site find of an address; '' = it does not probe the address. */
  foundOf(id: number): string {
    return this.#probed.get(id)?.health ?? ''
  }

  /** Addresses that this site serves because it reaches them, although most sites find them down. */
  get kept(): readonly string[] {
    if (this.#network.numbers.length === 2) return []
    const noted = this.#source!.inspect(100)
    return noted.flatMap((one) => (one.reason.startsWith('up: this site') ? one.address : []))
  }

  /** Addresses of other sites that are down by a decision of sites. */
  get out(): readonly number[] {
    const down = this.#memory?.down.get(HOST) ?? new Set()
    const ids = this.#network.sites.flatMap((one) => one.ids)
    return ids.filter((id) => down.has(addressOf(id)))
  }

  /** Drains an address of this site, or ends this. */
  drain(id: number, isDrained: boolean): void {
    this.#drains.set(`address:${addressOf(id)} site:${this.name}`, isDrained)
  }

  /** True if an address is drained, as far as this site knows. */
  isDrained(id: number): boolean {
    return this.#find(id)?.settings?.drain !== undefined
  }

  /** True if this site has an address, or received it from a peer. */
  knows(id: number): boolean {
    return this.#find(id) !== undefined
  }

  #find(id: number): PeerEndpoint | undefined {
    const heard = this.#peers.flatMap(({ received }) => received?.endpoints ?? [])
    return [...this.#endpoints(), ...heard].find((one) => targetsOf([one]).includes(addressOf(id)))
  }

  heard(number: number): boolean {
    const peer = this.#peers.find((one) => one.number === number)
    return peer !== undefined && this.#network.nowS * 1000 - peer.heardMs < 8000
  }

  /** Starts the nameserver. `kept`: true = all, false = nothing. */
  start(kept: Kept | boolean): void {
    const keeps = typeof kept === 'boolean' ? { findings: kept, endpoints: kept } : kept
    const network = this.#network
    const log = createLogger(
      this.name,
      (text) => void network.log.push(`${network.nowS} s ${text}`),
      () => false,
    )
    this.#table?.close()
    this.#source?.close()
    this.#watched = []
    this.isUp = true
    if (!keeps.findings) this.#probed = new Map()
    const before = this.#peers
    const others = network.numbers.filter((other) => other !== this.number)
    this.#peers = others.map((other) => {
      const peer = new SimulatedPeer(other, network, log)
      const known = keeps.endpoints ? before.find(({ number }) => number === other) : undefined
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
    this.#own = new StoredRecord(RECORD, packRecord(recordOf(this, network)))
    const own = sourceOf(this.ids.length === 0 ? [] : [this.#own])
    this.#memory = new QuorumMemory(
      clock,
      keeps.endpoints ? new Map(this.#memory?.down) : undefined,
    )
    this.quorum = new HealthQuorum({
      site: this.name,
      peers: this.#peers,
      quorum: 0,
      holdDownMs: 0,
      memory: this.#memory,
      observer: {
        watch: (_key, leaves) => {
          const ids = network.sites.flatMap((one) => one.ids)
          const addresses = leaves.map(({ address }) => address)
          this.#watched = ids.filter((id) => addresses.includes(addressOf(id)))
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
    const feeds = [this.#drains]
    const sitesOf = (): string[][] => this.ids.map(() => [this.name])
    const drains = { source, found: source.found, file: undefined, feeds, site: this.name }
    this.#table = new HealthTable({ ...drains, sitesOf, clock, timers: IDLE, log })
    source.followDrains(this.#table)
    this.#serve(source, this.#table)
  }

  /** Builds the RRsets of the records, as a server does. */
  #serve(source: MergedSource, health: HealthTable): void {
    const take = (type: number, set: OwnerSet | undefined): void => {
      const addresses = (family: 1 | 2): string[] => {
        return (set?.rdata ?? []).map((rdata) => printAddress(rdata, family)).sort()
      }
      if (type === RRType.A) this.answers = addresses(1)
      if (type === RRType.AAAA) this.answers6 = addresses(2)
    }
    const isHost = (owner: Uint8Array): boolean => printName(owner) === `${HOST}.`
    for (const type of [RRType.A, RRType.AAAA]) take(type, undefined)
    const common = { type: RRType.NS, ttlSeconds: 60, setIdentifier: '', weight: undefined }
    const zone = new RecordZone({
      apex: APEX,
      isLocalForm: false,
      fixed: [],
      defaultNs: { owner: APEX, ...common, codes: [], isDefault: false, rdata: [APEX] },
      sink: {
        put: (owner, set) => isHost(owner) && take(set.type, set),
        remove: (owner, type) => isHost(owner) && take(type, undefined),
        declare: () => {},
      },
      health,
      settings: this.#network.settings,
      onConflict: (text) => void this.#network.log.push(`${this.name} ${text}`),
      onOut: () => {},
    })
    zone.apply([...source.records()].map((after) => ({ before: undefined, after })))
    source.subscribe((changes) => zone.apply(changes))
    health.subscribe((keys) => {
      for (const key of keys) {
        const record = source.find(key)
        if (record !== undefined) zone.apply([{ before: record, after: record }])
      }
    })
  }

  /** Runs one second. */
  step(): void {
    const { nowS } = this.#network
    const times = this.#network.timesOf(this.number)
    for (const peer of this.#peers) if (nowS >= peer.pollS) this.#poll(peer)
    for (const other of [...this.ids, ...this.#watched]) {
      if ((nowS + 3 * other + this.number) % times.probeS !== 0) continue
      const probed = this.#probed.get(other) ?? new ProbedAddress()
      this.#probed.set(other, probed)
      probed.note(this.#network.reaches(this.number, other), nowS, times)
    }
    this.#writeFindings()
    this.#check()
  }

  #writeFindings(): void {
    for (const id of this.#network.sites.flatMap(({ ids }) => ids)) {
      const { health = 'unknown', sinceS = 0 } = this.#probed.get(id) ?? {}
      const observed = this.ids.includes(id) ? undefined : EPOCH_S + this.#skewS + sinceS
      const known: Finding | undefined =
        health === 'unknown'
          ? undefined
          : { recordKey: RECORD, address: addressOf(id), health, observedSeconds: observed }
      this.#findings!.set(String(id), known)
    }
    this.#health.publish()
  }

  #poll(peer: SimulatedPeer): void {
    const network = this.#network
    if (!network.hears(this.number, peer.number)) {
      peer.answer = undefined
      peer.pollS = network.nowS + Math.min(POLL_S_MAX, 2 ** ++peer.failures)
      return
    }
    const atS = network.nowS + (network.lateS[peer.number] ?? 0)
    peer.answer ??= { received: network.sites[peer.number]!.exported, atS }
    peer.pollS = peer.answer.atS
    if (peer.pollS > network.nowS) return
    const { received } = peer.answer
    peer.answer = undefined
    peer.failures = 0
    peer.pollS = network.nowS + 1
    peer.receive(received)
  }

  /** What the site exports at this second. */
  get exported(): Received {
    const { nowS } = this.#network
    if (this.#exported?.atS !== nowS) this.#exported = { received: this.#export(), atS: nowS }
    return this.#exported.received
  }

  /** A site of generation v1 has neither a name nor health. */
  #export(): Received {
    const isOld = this.#network.generations[this.number] === 'v1'
    const endpoints = this.#endpoints()
    if (isOld) {
      const plain = { site: `${this.name}:53`, health: 'unknown', sinceSeconds: 0 } as const
      const old = endpoints.map((one) => ({
        ...one,
        ...plain,
        setIdentifier: '',
        settings: undefined,
      }))
      return { endpoints: old, observations: [] }
    }
    const others = [...this.#probed].filter(([id]) => !this.ids.includes(id))
    const observations = others.flatMap(([id, { health, sinceS }]): SiteObservation[] => {
      if (health === 'unknown') return []
      const sinceSeconds = EPOCH_S + this.#skewS + sinceS
      return [{ site: this.name, address: addressOf(id), health, sinceSeconds }]
    })
    return { endpoints, observations }
  }

  /** Our own endpoints, with health and drains. */
  #endpoints(): readonly PeerEndpoint[] {
    const found = (health: string): string[] => {
      return this.ids.filter((id) => this.foundOf(id) === health).map(addressOf)
    }
    const drains = this.#table?.drains.drainsOf(this.#own) ?? NO_DRAINS
    const about = { site: this.name, key: RECORD, down: found('down'), up: found('up') }
    const content = unpackRecord(this.#own.packed)
    const endpoints = toPeerEndpoints(content, { ...about, drains, sinceSeconds: 0 })
    return endpoints.map((one, i) => {
      const { sinceS = 0 } = this.#probed.get(this.ids[i]!) ?? {}
      return { ...one, sinceSeconds: EPOCH_S + this.#skewS + sinceS }
    })
  }
}

function sourceOf(records: readonly StoredRecord[]): RecordSource {
  return {
    records: () => records,
    find: (key) => records.find((record) => key === record.key),
    recordCount: records.length,
    problems: () => [],
    unreadyReason: () => '',
    subscribe: () => () => {},
  }
}

function recordOf({ number, ids }: SimulatedSite, { weight }: SimulatedSites): DnsRecord {
  const owner = scanHost(HOST)!
  const setIdentifier = weight === undefined ? '' : nameOf(number)
  const common = { owner, ttlSeconds: 60, setIdentifier, weight, codes: [], isDefault: false }
  return {
    ...{ namespace: 'default', name: 'app', zoneLabel: '', rootHost: owner },
    ...{ isWildcardHost: false, isAggregate: false, createdSeconds: 0 },
    endpoints: ids.map((id) => {
      const { bytes, family } = scanAddress(addressOf(id))!
      return { ...common, type: family === 1 ? RRType.A : RRType.AAAA, rdata: [bytes] }
    }),
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
  /** Other times of single sites. */
  readonly siteTimes?: readonly CheckTimes[]
  /** Address families of the gateway of each site; missing = `[4]`. Without one, the site has no record of the host. */
  readonly families?: readonly (readonly Family[])[]
  /** How long each site takes to answer its peers; missing = less than a second. */
  readonly lateS?: readonly number[]
}

/** Sites on a network whose links can be cut, with a clock of their own. Equal seeds run equally. */
export class SimulatedSites extends SimulatedNetwork {
  readonly random: Random
  readonly numbers: readonly number[]
  readonly generations: readonly Generation[]
  readonly #times: CheckTimes
  readonly #siteTimes: readonly CheckTimes[]
  readonly weight: number | undefined
  readonly settings: ZoneSettings | undefined
  readonly families: readonly (readonly Family[])[]
  readonly lateS: readonly number[]
  /** Single addresses that do not answer, although their gateway is up. */
  readonly deaf = new Set<number>()
  readonly sites: readonly SimulatedSite[]
  readonly log: string[] = []
  nowS = 0
  constructor(parts: SimulatedSitesParts) {
    super()
    const { seed, generations, times, weight, settings, skewsS = [] } = parts
    this.families = parts.families ?? []
    this.lateS = parts.lateS ?? []
    this.random = new Random(seed)
    this.generations = generations
    this.#times = times
    this.#siteTimes = parts.siteTimes ?? []
    this.weight = weight
    this.settings = settings
    this.numbers = generations.map((_, i) => i)
    const skewOf = (number: number): number => skewsS[number] ?? this.random.below(5) - 2
    this.sites = this.numbers.map((number) => new SimulatedSite(number, skewOf(number), this))
    for (const site of this.sites) site.start(false)
  }

  timesOf(number: number): CheckTimes {
    return this.#siteTimes[number] ?? this.#times
  }

  /** True if an address works for clients near its site. */
  isLive(id: number): boolean {
    return this.sites[siteOf(id)]!.isGatewayUp && !this.deaf.has(id)
  }

  override heal(): void {
    super.heal()
    this.deaf.clear()
  }

  /** True if probes of a site reach an address. */
  override reaches(from: number, id: number): boolean {
    return !this.deaf.has(id) && super.reaches(from, siteOf(id))
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
