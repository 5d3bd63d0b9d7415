import { Random } from '../../../src/base/random.ts'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import type { ApiObject } from '../../../src/kube/api.ts'
import { readObserved } from '../../../src/operator/peers/earlier-findings.ts'
import type { PeerHealth } from '../../../src/operator/peers/peer-health.ts'
import { readExportedBy } from '../../../src/operator/plan/own.ts'
import { PeerProbing } from '../../../src/operator/probes/peer-probing.ts'
import type { Reconciler } from '../../../src/operator/reconcile/reconciler.ts'
import type { Generation } from '../../../src/peering/peer-endpoint.ts'
import { SITES_ANNOTATION, scanSiteFacts } from '../../../src/records/site-facts.ts'
import { SimulatedNetwork } from '../../peering/quorum/simulated-network.ts'
import { type CheckTimes, ProbedAddress } from '../../peering/quorum/simulated-probes.ts'
import { peerEndpoint, peerHealthOf, ToyCluster, ToyPeers } from '../../support/operator-cluster.ts'
import { at, dnsRecord, secret } from '../../support/operator-objects.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'
import { toyReconciler } from '../../support/toy-reconciler.ts'

const KEY = 'a/app'
const HOST = 'k.example.com'
/** From the start of an operator to its first query. */
const FIRST_QUERY_S = 3
const EXPIRY_MS = 24 * 3_600_000

/** A cluster with an application, a nameserver and an operator, whose probes and queries the network decides. */
export class SimulatedCluster {
  readonly number: number
  readonly name: string
  readonly cluster = new ToyCluster()
  /** The nameserver answers. */
  isUp = true
  isGatewayUp = true
  isOperatorUp = true
  readonly #peers = new ToyPeers()
  readonly #network: SimulatedClusters
  readonly #own = new ProbedAddress()
  #timers = new FakeTimers()
  #health: PeerHealth | undefined
  #reconciler: Reconciler | undefined
  #isDirty = true
  #dueMs = 0
  #startSecond = 0

  constructor(number: number, network: SimulatedClusters) {
    this.number = number
    this.name = `site${number}`
    this.#network = network
    const addresses = network.numbers.map(nameserverOf)
    this.cluster.put(secret('a', 'coredns', { ZONES: HOST, NAMESERVERS: addresses.join() }))
    const { probeS, failures, successes } = network.times
    const healthCheck = {
      ...{ protocol: 'TCP', port: 443, interval: `${probeS}s` },
      ...{ failureThreshold: failures, successThreshold: successes },
    }
    const target = { recordType: 'A', recordTTL: 60, targets: [addressOf(number)] }
    const check = network.isChecked ? { healthCheck } : {}
    this.cluster.put(dnsRecord({ spec: { endpoints: [{ dnsName: HOST, ...target }], ...check } }))
  }

  /** Starts the nameserver, and an operator that knows only what is in the cluster. */
  start(_keeps = false): void {
    this.#health?.close()
    this.#peers.answers.clear()
    this.#timers = new FakeTimers()
    this.isUp = true
    this.isOperatorUp = true
    this.#startSecond = this.#network.second
    const { clock, silentMs, log } = this.#network
    const timers = this.#timers
    const onChange = (): void => {
      this.#isDirty = true
    }
    const probing = new PeerProbing({
      probe: async ({ address }) => {
        const isReached = this.#network.reaches(this.number, numberOf(address))
        return isReached
          ? { kind: 'healthy', httpStatus: 0 }
          : { kind: 'unhealthy', httpStatus: 0, reason: 'timeout' }
      },
      allowsInsecureCertificates: true,
      onChange,
      onResult: () => {},
      ...{ clock, timers, random: new Random(this.number + 1) },
    })
    const print = createLogger(
      this.name,
      (line) => log.push(`${this.name} ${line}`),
      () => false,
    )
    this.#health = peerHealthOf(this.name, clock, {
      ...{ probing, timers, silentMs, log: print, onEvent: onChange },
    })
    this.#reconciler = toyReconciler(this.cluster, clock, {
      ...{ site: this.name, peers: this.#peers, silentMs, peerHealth: this.#health },
    })
    this.#isDirty = true
  }

  /** Runs one second. */
  async step(): Promise<void> {
    const { clock, times, numbers, second } = this.#network
    if ((second + this.number) % times.probeS === 0 && this.#network.isChecked) this.#probeOwn()
    if (!this.isOperatorUp) return
    if (second >= this.#startSecond + FIRST_QUERY_S) for (const other of numbers) this.#poll(other)
    await this.#timers.advance(1000)
    if (!this.#isDirty && clock.monotonic() < this.#dueMs) return
    this.#isDirty = false
    const againMs = await this.#reconciler!.reconcile(KEY)
    this.#dueMs = againMs === undefined ? Infinity : clock.monotonic() + againMs
  }

  #probeOwn(): void {
    const { second, times } = this.#network
    const address = addressOf(this.number)
    const before = this.#own.health
    this.#own.note(this.#network.reaches(this.number, this.number), second, times)
    const { health } = this.#own
    if (health !== before) this.#isDirty = true
    this.cluster.health.set(KEY, {
      down: health === 'down' ? [address] : [],
      up: health === 'up' ? [address] : [],
      probes: [{ address, health }],
    })
  }

  #poll(other: number): void {
    const address = nameserverOf(other)
    const before = this.#peers.answers.get(address)
    const exported = this.#network.sites[other]!.exported()
    if (!this.#network.hears(this.number, other) || exported === undefined) {
      const silentS = 30
      const isOld =
        before?.kind === 'answered' && this.#network.msSince(before.state.seenMs) < silentS * 1000
      if (before?.kind !== 'silent' && !isOld) this.#peers.fallSilent(address)
      if (before?.kind !== 'silent' && !isOld) this.#isDirty = true
      this.#peers.heardMs.set(
        address,
        before?.kind === 'answered'
          ? before.state.seenMs
          : (this.#peers.heardMs.get(address) ?? Number.NEGATIVE_INFINITY),
      )
      return
    }
    const { clock } = this.#network
    const moment = { seenMs: clock.monotonic(), seenTimeMs: clock.now() }
    this.#peers.say(address, exported.site, exported.endpoints, moment, true, exported.generation)
    this.#peers.observe(address, exported.observations)
    this.#peers.heardMs.set(address, moment.seenMs)
    const after = this.#peers.answers.get(address)
    const told = (answer: typeof after): string => {
      if (answer?.kind !== 'answered') return ''
      const { siteStates, observations } = answer.state
      return JSON.stringify([siteStates.map(({ endpoints }) => endpoints), observations])
    }
    if (told(before) !== told(after)) this.#isDirty = true
  }

  /** What the nameserver exports; undefined = nothing yet. */
  exported() {
    const local = this.cluster.record('a/local-app')
    if (local === undefined) return undefined
    const generation: Generation = this.#network.generations[this.number]!
    if (generation === 'v2') {
      const observations = readObserved(local, this.name)
      return { site: this.name, generation, endpoints: readExportedBy(local), observations }
    }
    const site = nameserverOf(this.number)
    const endpoint = peerEndpoint({ site, targets: [addressOf(this.number)], sinceSeconds: 0 })
    return { site, generation, endpoints: [endpoint], observations: [] }
  }

  get status(): ApiObject {
    return at(this.cluster.stored(KEY), 'status') as ApiObject
  }

  /** Addresses that a Sextant server serves, and those in `spec.endpoints`, which other programs read. */
  get answers(): { readonly ours: readonly string[]; readonly others: readonly string[] } {
    const merged = this.cluster.record('a/merged-app')
    if (merged === undefined) return { ours: [], others: [] }
    const facts = scanSiteFacts(merged.annotation(SITES_ANNOTATION), merged.endpointObjects)
    if (typeof facts === 'string') throw new Error(facts)
    const all: string[] = []
    const working: string[] = []
    for (const { endpoints, down } of facts.parts) {
      for (const target of endpoints.flatMap((one) => one.targets as string[])) {
        all.push(target)
        if (!Object.hasOwn(down, target)) working.push(target)
      }
    }
    const specs = at(merged.object, 'spec', 'endpoints') as readonly ApiObject[]
    const ours = [...(working.length > 0 ? working : all)].sort()
    return { ours, others: specs.flatMap(({ targets }) => targets as string[]).sort() }
  }
}

export interface SimulatedClustersParts {
  /** One per cluster. */
  readonly generations: readonly Generation[]
  readonly times: CheckTimes
  readonly silentMs?: number
  /** False = the records have no health check. */
  readonly isChecked?: boolean
}

/** Clusters on a network whose links can be cut. */
export class SimulatedClusters extends SimulatedNetwork {
  readonly numbers: readonly number[]
  readonly generations: readonly Generation[]
  readonly times: CheckTimes
  readonly silentMs: number
  readonly isChecked: boolean
  readonly sites: readonly SimulatedCluster[]
  readonly clock = new FakeClock()
  readonly log: string[] = []
  second = 0

  constructor({
    generations,
    times,
    silentMs = EXPIRY_MS,
    isChecked = true,
  }: SimulatedClustersParts) {
    super()
    this.generations = generations
    this.times = times
    this.silentMs = silentMs
    this.isChecked = isChecked
    this.numbers = generations.map((_, i) => i)
    this.sites = this.numbers.map((number) => new SimulatedCluster(number, this))
    for (const site of this.sites) site.start()
  }

  msSince(ms: number): number {
    return this.clock.monotonic() - ms
  }

  /** Runs so many seconds. `check`: called after each. */
  async run(seconds: number, check: () => void = () => {}): Promise<void> {
    for (let i = 0; i < seconds; i++) {
      this.second++
      this.clock.pass(1000)
      for (const site of this.sites) await site.step()
      check()
    }
  }
}

function nameserverOf(number: number): string {
  return `198.51.100.${number + 1}:53`
}

export function addressOf(number: number): string {
  return `192.0.2.${number + 1}`
}

function numberOf(address: string): number {
  return Number(address.split('.')[3]) - 1
}
