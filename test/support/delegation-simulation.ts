import type { ApiObject } from '../../src/kube/api.ts'
import { keyOf } from '../../src/kube/object-key.ts'
import { KeyedMutex } from '../../src/operator/delegation/keyed-mutex.ts'
import { OwnerIndex } from '../../src/operator/delegation/owner-index.ts'
import { SourceIndex } from '../../src/operator/delegation/source-index.ts'
import type { DelegationRole } from '../../src/operator/plan/decide.ts'
import type { Reconciler } from '../../src/operator/reconcile/reconciler.ts'
import { mappingOf, metadataOf } from '../../src/operator/record/fields.ts'
import { DnsRecordView, roleOf } from '../../src/operator/record/record-view.ts'
import { RemoteReconciler } from '../../src/operator/remotes/remote-reconciler.ts'
import { HOST, isOwner } from './delegation-fixture.ts'
import { ToyCluster } from './operator-cluster.ts'
import { at, dnsRecord, secret } from './operator-objects.ts'
import { FakeClock } from './setup.ts'
import { toyReconciler } from './toy-reconciler.ts'

const ROUNDS_MAX = 20
export const REMOVAL_TIMEOUT_MS = 3_600_000

/** One cluster of several, in memory, and its operator. */
export class SimulatedSite {
  readonly name: string
  readonly cluster = new ToyCluster()
  readonly role: DelegationRole
  readonly owners = new OwnerIndex()
  readonly #turns = new KeyedMutex()
  readonly #clock: FakeClock
  readonly #reconciler: Reconciler
  readonly #remotes = new Map<SimulatedSite, RemoteReconciler>()
  /** False: the operator does nothing, and no other cluster can reach the API server. */
  isUp = true

  constructor(name: string, role: DelegationRole, clock: FakeClock) {
    this.name = name
    this.role = role
    this.#clock = clock
    this.#reconciler = toyReconciler(this.cluster, clock, {
      ...{ site: name, role, removalTimeoutMs: REMOVAL_TIMEOUT_MS, mutex: this.#turns },
      owners: {
        rivalOf: (record) => this.owners.rivalOf(record),
        isPresent: (key, id) =>
          [this, ...this.#remotes.keys()].some(({ cluster }) => isOwner(cluster, key, id)),
      },
    })
    if (role === 'primary') this.putSecret(HOST)
  }

  putSecret(zones: string): void {
    const labels = { 'kuadrant.io/default-provider': 'true' }
    this.cluster.put(secret('a', 'coredns', { ZONES: zones }, { labels }))
  }

  follow(other: SimulatedSite): void {
    const sourcesOf = (key: string): Iterable<string> => {
      const index = new SourceIndex()
      for (const object of other.cluster.records.values()) index.add(new DnsRecordView(object))
      return index.of(key)
    }
    const reconciler = new RemoteReconciler({
      view: this.cluster,
      writer: this.cluster,
      mutex: this.#turns,
      owners: this.owners,
      remote: { record: (key) => other.cluster.record(key), sourcesOf },
      writeStatus: async (record, status) =>
        other.writeRemoteStatus(record.object, this.name, status),
      clock: this.#clock,
      ownUid: this.name,
      cluster: other.name,
      site: this.name,
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

  async reconcile(): Promise<void> {
    if (!this.isUp) return
    const keys = () => [...this.cluster.records.keys()].sort()
    for (const key of keys()) await this.#reconciler.reconcile(key)
    for (const [other, reconciler] of this.#remotes) {
      if (!other.isUp) continue
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

/** Several clusters that delegate to each other. */
export class DelegationSimulation {
  readonly clock = new FakeClock()
  readonly sites: SimulatedSite[] = []

  add(name: string, role: DelegationRole = 'primary'): SimulatedSite {
    const site = new SimulatedSite(name, role, this.clock)
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
    }
    throw new Error(`the operators do not settle: ${all.slice(-20).join(', ')}`)
  }
}
