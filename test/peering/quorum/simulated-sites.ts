import { Random } from '../../../src/base/random.ts'
import type { HealthObservation } from '../../../src/health/address-health.ts'
import { dropDown } from '../../../src/peering/merge/health.ts'
import { mergeSiteStates } from '../../../src/peering/merge/merge-site-states.ts'
import type { EndpointHealth, PeerEndpoint, SiteState } from '../../../src/peering/peer-endpoint.ts'
import { HealthQuorum, QuorumMemory } from '../../../src/peering/quorum/health-quorum.ts'
import type { SiteObservation } from '../../../src/peering/quorum/observation-codec.ts'
import { createLogger } from '../../../src/telemetry/log.ts'

export const HOST = 'app.k.example.com'
export const HOLD_DOWN_S = 60
/** Seconds between two probes, and failures in a row after which an address is down. */
export const PROBE_S = 5
export const FAILURES = 3
/** Longest pause between two polls of a silent peer, in seconds. */
export const POLL_S_MAX = 15
const EPOCH_S = 1_790_000_000

const isDebug = (): boolean => false

/** What a poll of a peer received. */
export interface Received {
  readonly health: EndpointHealth
  readonly sinceSeconds: number
  readonly observed: readonly HealthObservation[]
  /** When the peer's probes last succeeded, by site: for the checks of the test only. */
  readonly successS: readonly number[]
  readonly heardS: number
}

/** Health of one address as the probes of one site find it. */
class ProbedAddress {
  health: EndpointHealth = 'unknown'
  sinceS = 0
  failures = 0
  successS = Number.NEGATIVE_INFINITY

  /** Returns true if the health changed. */
  note(isReached: boolean, nowS: number): boolean {
    this.failures = isReached ? 0 : this.failures + 1
    if (isReached) this.successS = nowS
    const next = isReached ? 'up' : this.failures > FAILURES ? 'down' : this.health
    if (next === this.health) return false
    this.health = next
    this.sinceS = nowS
    return true
  }
}

/** A site: its nameserver, and one gateway whose address is `192.0.2.N`. */
export class SimulatedSite {
  readonly number: number
  readonly #network: SimulatedSites
  /** Difference between the wall clock of this site and the true time. */
  readonly skewS: number
  readonly probed: ProbedAddress[]
  readonly received: (Received | undefined)[] = []
  readonly #pollS: number[]
  readonly #failedPolls: number[]
  quorum!: HealthQuorum
  #dueMs = 0
  #isDirty = true
  answers: readonly string[] = []
  startS = 0
  isUp = true
  isGatewayUp = true

  constructor(number: number, count: number, skewS: number, network: SimulatedSites) {
    this.number = number
    this.skewS = skewS
    this.#network = network
    this.probed = Array.from({ length: count }, () => new ProbedAddress())
    this.#pollS = Array.from({ length: count }, () => 0)
    this.#failedPolls = Array.from({ length: count }, () => 0)
    this.start()
  }

  get name(): string {
    return nameOf(this.number)
  }

  /** Starts the nameserver. Findings and endpoints survive, as with `probe FILE` and `peer-cache`. */
  start(): void {
    const network = this.#network
    this.isUp = true
    this.startS = network.nowS
    const others = network.numbers.filter((other) => other !== this.number)
    const clock = {
      monotonic: () => network.nowS * 1000,
      now: () => (EPOCH_S + network.nowS + this.skewS) * 1000,
    }
    this.quorum = new HealthQuorum({
      site: this.name,
      peers: others.map((other) => this.#peerOf(other)),
      quorum: 0,
      holdDownMs: HOLD_DOWN_S * 1000,
      memory: new QuorumMemory(clock),
      observer: { watch: () => {}, close: () => {} },
      clock,
      log: createLogger(
        this.name,
        (text) => void network.log.push(`${network.nowS} s ${text}`),
        isDebug,
      ),
    })
    this.#isDirty = true
  }

  /** Runs one second. */
  step(): void {
    const { nowS, numbers } = this.#network
    for (const other of numbers) {
      if (other !== this.number && nowS >= this.#pollS[other]!) this.#poll(other)
      if ((nowS + other + this.number) % PROBE_S === 0) {
        const isReached = this.#network.reaches(this.number, other)
        if (this.probed[other]!.note(isReached, nowS)) this.#isDirty = true
      }
    }
    if (this.quorum.check() || nowS * 1000 >= this.#dueMs) this.#isDirty = true
    if (this.#isDirty) this.#settle()
  }

  #poll(other: number): void {
    const network = this.#network
    const { nowS } = network
    if (!network.hears(this.number, other)) {
      const failed = ++this.#failedPolls[other]!
      this.#pollS[other] = nowS + Math.min(POLL_S_MAX, 2 ** failed)
      return
    }
    this.#failedPolls[other] = 0
    this.#pollS[other] = nowS + 1
    const before = this.received[other]
    const peer = network.sites[other]!
    const own = peer.probed[other]!
    const observed = network.numbers.flatMap((number) => {
      const found = peer.probed[number]!
      if (number === other || found.health === 'unknown') return []
      const sinceSeconds = EPOCH_S + peer.skewS + found.sinceS
      return [{ address: addressOf(number), health: found.health, sinceSeconds }]
    })
    this.received[other] = {
      health: own.health,
      sinceSeconds: EPOCH_S + peer.skewS + own.sinceS,
      observed,
      successS: peer.probed.map((one) => one.successS),
      heardS: nowS,
    }
    const isSame =
      before?.health === own.health && JSON.stringify(before.observed) === JSON.stringify(observed)
    if (!isSame) this.#isDirty = true
  }

  #peerOf(other: number) {
    const of = () => this.received[other]
    return {
      address: `${nameOf(other)}:53`,
      get lastSeenMs() {
        const received = of()
        return received === undefined ? Number.NEGATIVE_INFINITY : received.heardS * 1000
      },
      get ownSite() {
        return of() === undefined ? '' : nameOf(other)
      },
      observationCount: 0,
      observationsOf: (): readonly SiteObservation[] =>
        (of()?.observed ?? []).map((one) => ({ ...one, site: nameOf(other) })),
    }
  }

  #settle(): void {
    this.#isDirty = false
    const { numbers, nowS } = this.#network
    const siteStates: SiteState[] = []
    for (const other of numbers) {
      const received = this.received[other]
      if (received === undefined) continue
      siteStates.push({
        site: nameOf(other),
        exporter: `${nameOf(other)}:53`,
        isOwn: true,
        rootHost: HOST,
        endpoints: [endpointOf(other, received.health, received.sinceSeconds)],
        seenMs: received.heardS * 1000,
        generation: 'v2',
      })
    }
    const mine = this.probed[this.number]!
    const own = [endpointOf(this.number, mine.health, 0)]
    const settled = this.quorum.settle({
      host: HOST,
      own,
      ownDown: [],
      checkedKey: 'default/app',
      observed: numbers.flatMap((number) => {
        const { health, sinceS } = this.probed[number]!
        if (number === this.number || health === 'unknown') return []
        const sinceSeconds = EPOCH_S + this.skewS + sinceS
        return [{ address: addressOf(number), health, sinceSeconds }]
      }),
      siteStates,
    })
    this.#dueMs = settled.dueMs ?? Number.POSITIVE_INFINITY
    const merge = mergeSiteStates(
      { site: this.name, endpoints: own },
      settled.siteStates,
      nowS * 1000,
    )
    this.answers = dropDown(merge.endpoints).flatMap(({ targets }) => targets)
  }
}

/** Sites on a network whose links can be cut, with a clock of their own. Equal seeds run equally. */
export class SimulatedSites {
  readonly random: Random
  readonly numbers: readonly number[]
  readonly sites: readonly SimulatedSite[]
  readonly log: string[] = []
  nowS = 0
  /** Queries and probes from one site to another, `FROM TO`, that fail. */
  readonly #cutQueries = new Set<string>()
  readonly #cutProbes = new Set<string>()
  /** Share of lost queries and probes, by link. */
  readonly #loss = new Map<string, number>()

  constructor(count: number, seed: number, skewsS: readonly number[] = []) {
    this.random = new Random(seed)
    this.numbers = Array.from({ length: count }, (_, i) => i)
    const sites: SimulatedSite[] = []
    this.sites = sites
    for (const number of this.numbers) {
      sites.push(new SimulatedSite(number, count, skewsS[number] ?? this.random.below(5) - 2, this))
    }
  }

  /** Runs so many seconds. `check`: called after each. */
  run(seconds: number, check: () => void = () => {}): void {
    for (let i = 0; i < seconds; i++) {
      this.nowS++
      for (const site of this.sites) if (site.isUp) site.step()
      check()
    }
  }

  hears(from: number, to: number): boolean {
    return this.sites[to]!.isUp && this.#passes(from, to, this.#cutQueries)
  }

  reaches(from: number, to: number): boolean {
    return this.sites[to]!.isGatewayUp && this.#passes(from, to, this.#cutProbes)
  }

  #passes(from: number, to: number, cut: ReadonlySet<string>): boolean {
    const link = `${from} ${to}`
    if (cut.has(link)) return false
    const loss = this.#loss.get(link) ?? 0
    return loss === 0 || this.random.below(100) >= loss * 100
  }

  /** Loses a share of what `from` sends to `to`. */
  setLoss(from: number, to: number, share: number): void {
    if (from !== to) this.#loss.set(`${from} ${to}`, share)
  }

  /** Cuts or restores what `from` sends to `to`. */
  setLink(
    from: number,
    to: number,
    isUp: boolean,
    of: 'both' | 'queries' | 'probes' = 'both',
  ): void {
    const link = `${from} ${to}`
    for (const [kind, cut] of [
      ['queries', this.#cutQueries] as const,
      ['probes', this.#cutProbes] as const,
    ]) {
      if (of !== 'both' && of !== kind) continue
      if (isUp || from === to) cut.delete(link)
      else cut.add(link)
    }
  }

  /** Cuts all links of a site, or restores them. */
  setSite(number: number, isUp: boolean): void {
    for (const other of this.numbers) {
      this.setLink(number, other, isUp)
      this.setLink(other, number, isUp)
    }
  }

  heal(): void {
    this.#cutQueries.clear()
    this.#cutProbes.clear()
    this.#loss.clear()
  }
}

export function addressOf(number: number): string {
  return `192.0.2.${number + 1}`
}

export function nameOf(number: number): string {
  return `site${number}`
}

function endpointOf(number: number, health: EndpointHealth, sinceSeconds: number): PeerEndpoint {
  return {
    site: nameOf(number),
    rootHost: HOST,
    dnsName: HOST,
    recordType: 'A',
    ttlSeconds: 60,
    setIdentifier: nameOf(number),
    weight: 100,
    geoCodes: [],
    isDefault: false,
    targets: [addressOf(number)],
    health,
    sinceSeconds,
  }
}
