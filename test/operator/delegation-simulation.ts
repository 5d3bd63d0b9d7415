import { Random } from '../../src/base/random.ts'
import { createLogger } from '../../src/base/telemetry/log.ts'
import { ProbePolicy } from '../../src/health/probes/probe-policy.ts'
import type { ApiObject } from '../../src/kube/api.ts'
import { keyOf } from '../../src/kube/object-key.ts'
import { KeyedMutex } from '../../src/operator/delegation/keyed-mutex.ts'
import { OwnerIndex } from '../../src/operator/delegation/owner-index.ts'
import { SourceIndex } from '../../src/operator/delegation/source-index.ts'
import type { DelegationRole } from '../../src/operator/plan/decide.ts'
import { PeerProbing } from '../../src/operator/probes/peer-probing.ts'
import type { Reconciler } from '../../src/operator/reconcile/reconciler.ts'
import { RecordDeaths } from '../../src/operator/reconcile/record-deaths.ts'
import { mappingOf, metadataOf } from '../../src/operator/record/fields.ts'
import { DnsRecordView, roleOf } from '../../src/operator/record/record-view.ts'
import { RemoteReconciler } from '../../src/operator/remotes/remote-reconciler.ts'
import type { HealthCheck } from '../../src/records/health-check.ts'
import { HOST, isOwner } from '../support/delegation-fixture.ts'
import { peerHealthOf, ToyCluster } from '../support/operator-cluster.ts'
import { at, dnsRecord, secret } from '../support/operator-objects.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'
import { toyReconciler } from '../support/toy-reconciler.ts'

const ROUNDS_MAX = 20
/** As in `RemoteCluster`. */
const ASK_MS = 3000
export const REMOVAL_TIMEOUT_MS = 3_600_000

/** One cluster of several, in memory, and its operator. */
export class SimulatedSite {
  /** Also the id of its cluster. */
  readonly name: string
  readonly site: string
  readonly cluster = new ToyCluster()
  readonly role: DelegationRole
  readonly owners = new OwnerIndex()
  readonly #turns = new KeyedMutex()
  readonly #simulation: DelegationSimulation
  #timers = new FakeTimers()
  #reconciler: Reconciler
  /** When the API server of each other cluster last answered. */
  readonly #heardMs = new Map<string, number>()
  /** Other clusters whose records were read since the start. */
  readonly #read = new Set<string>()
  readonly #remotes = new Map<SimulatedSite, RemoteReconciler>()
  /** Milliseconds until the next reconcile of each record, as its last one wanted. */
  readonly againMs = new Map<string, number | undefined>()
  /** What the operator finds wrong with the clocks of API servers, by the name of the cluster. */
  readonly clockFaults = new Map<string, string>()
  /** False: the operator does nothing, and no other cluster can reach the API server. */
  isUp = true
  /** False: no operator runs, although the API server answers. */
  hasOperator = true

  constructor(name: string, role: DelegationRole, simulation: DelegationSimulation, site = name) {
    this.name = name
    this.site = site
    this.role = role
    this.#simulation = simulation
    this.#reconciler = this.#createReconciler()
    if (role === 'primary') this.putSecret(HOST)
  }

  /** Starts another operator, which knows only what is in its cluster until it hears the others. */
  restart(): void {
    this.#heardMs.clear()
    this.#read.clear()
    this.#timers = new FakeTimers()
    this.#reconciler = this.#createReconciler()
  }

  #createReconciler(): Reconciler {
    const { clock, silentMs, reaches, log, events } = this.#simulation
    const { name, role } = this
    const timers = this.#timers
    const probing = new PeerProbing({
      probe: async ({ address }) =>
        reaches(name, address)
          ? { kind: 'healthy', httpStatus: 0 }
          : { kind: 'unhealthy', httpStatus: 0, reason: 'timeout' },
      allowsInsecureCertificates: true,
      onChange: () => {},
      onResult: () => {},
      ...{ clock, timers, random: new Random(1) },
    })
    const print = createLogger(
      name,
      (line) => log.push(line),
      () => false,
    )
    const rules = { silentMs, unprobed: '', quorum: 0, holdDownMs: 0, allDown: undefined }
    const policy = new ProbePolicy([])
    return toyReconciler(this.cluster, clock, {
      ...{
        site: this.site,
        role,
        removalTimeoutMs: REMOVAL_TIMEOUT_MS,
        mutex: this.#turns,
        silentMs,
      },
      peerHealth: peerHealthOf(this.site, clock, { probing, timers, silentMs, log: print, events }),
      deaths: new RecordDeaths({
        ...{ site: this.site, clock, log: print },
        rules: { ...rules, policy, commands: new Set() },
      }),
      apiClock: this.#clockOf(this.name),
      clusters: {
        heardMsOf: (id) => this.#heardMs.get(id) ?? Number.NEGATIVE_INFINITY,
        checkOf: (id, key) => this.#remoteCheck(id, key),
        isKnown: (id) => this.#read.has(id),
        hasAll: (key) => this.#hasAll(key),
      },
      owners: {
        rivalOf: (record) => this.owners.rivalOf(record),
        isPresent: (key, id) =>
          [this, ...this.#remotes.keys()].some(({ cluster }) => isOwner(cluster, key, id)),
      },
    })
  }

  /** Of a cluster whose records were read since the start, as they are cached. */
  #remoteCheck(id: string, key: string): HealthCheck | undefined {
    const other = this.#simulation.sites.find(({ name }) => name === id)
    if (other === undefined || !this.#read.has(id)) return undefined
    for (const source of sourcesIn(other, key)) {
      const record = other.cluster.record(source)
      if (record !== undefined) return record.healthCheck
    }
    return undefined
  }

  #hasAll(key: string): boolean {
    return [...this.#remotes.keys()].every((other) => {
      const sources = [...sourcesIn(other, key)].map((source) => other.cluster.record(source))
      const isDone = sources.every((one) => one?.asSeenByCluster(this.name).condition('Ready'))
      return this.#read.has(other.name) && isDone
    })
  }

  #clockOf(name: string): { readonly fault: string } {
    const { clockFaults } = this
    return {
      get fault() {
        return clockFaults.get(name) ?? ''
      },
    }
  }

  putSecret(zones: string): void {
    const labels = { 'kuadrant.io/default-provider': 'true' }
    this.cluster.put(secret('a', 'coredns', { ZONES: zones }, { labels }))
  }

  follow(other: SimulatedSite): void {
    const reconciler = new RemoteReconciler({
      view: this.cluster,
      writer: this.cluster,
      mutex: this.#turns,
      owners: this.owners,
      remote: {
        record: (key) => other.cluster.record(key),
        sourcesOf: (key) => sourcesIn(other, key),
      },
      remoteClock: this.#clockOf(other.name),
      apiClock: this.#clockOf(this.name),
      writeStatus: async (record, status) =>
        other.writeRemoteStatus(record.object, this.name, status),
      clock: this.#simulation.clock,
      ownUid: this.name,
      cluster: other.name,
      site: this.site,
      hasAll: (key) => this.#hasAll(key),
    })
    this.#remotes.set(other, reconciler)
  }

  delegate(name: string, endpoints: readonly ApiObject[], spec: ApiObject = {}): void {
    const record = dnsRecord({ name, uid: `uid-of-${name}-in-${this.name}` })
    const { providerRef: _, ...others } = record.spec as ApiObject
    this.cluster.put({ ...record, spec: { ...others, delegate: true, endpoints, ...spec } })
  }

  /** Writes the status that the cluster `by` has for a record of this cluster. */
  writeRemoteStatus(record: ApiObject, by: string, remote: ApiObject): void {
    const key = keyOf(record)
    const present = this.cluster.records.get(key)
    if (present === undefined) return
    const status = mappingOf(present, 'status')
    const remoteRecordStatuses = { ...mappingOf(status, 'remoteRecordStatuses'), [by]: remote }
    this.cluster.records.set(key, {
      ...present,
      status: { ...status, remoteRecordStatuses },
    })
    this.cluster.writes.push(`remote status of ${metadataOf(record).name} by ${by}`)
  }

  async pass(ms: number): Promise<void> {
    const nowMs = this.#simulation.clock.monotonic()
    const isAsking = nowMs % ASK_MS < ms
    for (const { isUp, name } of this.#remotes.keys()) {
      if (isUp && isAsking) this.#heardMs.set(name, nowMs)
    }
    if (this.isUp && this.hasOperator) await this.#timers.advance(ms)
  }

  async reconcile(): Promise<void> {
    if (!this.isUp || !this.hasOperator) return
    const keys = () => [...this.cluster.records.keys()].sort()
    for (const key of keys()) this.againMs.set(key, await this.#reconciler.reconcile(key))
    for (const [other, reconciler] of this.#remotes) {
      if (!other.isUp) continue
      this.#read.add(other.name)
      for (const key of [...other.cluster.records.keys()].sort()) await reconciler.reconcile(key)
      for (const key of keys()) await reconciler.sweep(key)
    }
  }

  /** `name TYPE target,…` of all endpoints of authoritative records except ownership TXT records; sorted. */
  served(): readonly string[] {
    return [...this.cluster.records.values()]
      .filter((object) => roleOf(object) === 'authoritative')
      .flatMap((record) => at(record, 'spec', 'endpoints') as readonly ApiObject[])
      .filter(({ recordType }) => recordType !== 'TXT')
      .map(({ dnsName, recordType, targets }) => `${dnsName} ${recordType} ${targets}`)
      .sort()
  }

  /** `status reason: message` of Ready, as this cluster or `by` wrote it; '' if it is missing. */
  ready(name: string, by?: SimulatedSite): string {
    const record = this.cluster.stored(`a/${name}`)
    const path = by === undefined ? [] : ['remoteRecordStatuses', by.name]
    const conditions = (at(record, 'status', ...path, 'conditions') ?? []) as readonly ApiObject[]
    const found = conditions.find(({ type }) => type === 'Ready')
    return found === undefined ? '' : `${found.status} ${found.reason}: ${found.message}`
  }
}

/** Keys of the records of a cluster that delegate to the authoritative record `key`. */
function sourcesIn({ cluster }: SimulatedSite, key: string): Iterable<string> {
  const index = new SourceIndex()
  for (const object of cluster.records.values()) index.add(new DnsRecordView(object))
  return index.of(key)
}

/** Several clusters that delegate to each other. */
export class DelegationSimulation {
  readonly clock = new FakeClock()
  readonly sites: SimulatedSite[] = []
  readonly log: string[] = []
  /** All writes, each with the cluster. */
  readonly writes: string[] = []
  /** `reason: note` of the Events about addresses of other clusters. */
  readonly happenings: string[] = []
  readonly events = {
    record: (_: unknown, { reason, note }: { reason: string; note: string }) => {
      this.happenings.push(`${reason}: ${note}`)
    },
  }
  readonly silentMs: number
  /** Whether probes of a cluster reach an address. */
  readonly reaches: (from: string, address: string) => boolean

  constructor(silentMs = 24 * 3_600_000, reaches: DelegationSimulation['reaches'] = () => true) {
    this.silentMs = silentMs
    this.reaches = reaches
  }

  /** Lets so many seconds pass; after each, all operators do what is to do. */
  async pass(seconds: number, check: () => void = () => {}): Promise<void> {
    for (let i = 0; i < seconds; i++) {
      this.clock.pass(1000)
      for (const site of this.sites) await site.pass(1000)
      await this.settle()
      check()
    }
  }

  add(name: string, role: DelegationRole = 'primary', siteName = name): SimulatedSite {
    const site = new SimulatedSite(name, role, this, siteName)
    for (const other of this.sites) {
      if (role === 'primary') site.follow(other)
      if (other.role === 'primary') other.follow(site)
    }
    this.sites.push(site)
    return site
  }

  /** Reconciles all records of all clusters until none writes anything; returns the writes. */
  async settle(): Promise<string[]> {
    const all: string[] = []
    for (let round = 0; round < ROUNDS_MAX; round++) {
      for (const site of this.sites) await site.reconcile()
      const writes = this.sites.flatMap((site) =>
        site.cluster.takeWrites().map((write) => `${site.name}: ${write}`),
      )
      if (writes.length === 0) return all
      all.push(...writes)
      this.writes.push(...writes)
    }
    throw new Error(`the operators do not settle: ${all.slice(-20).join(', ')}`)
  }
}
