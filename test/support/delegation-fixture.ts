import { ApiError, type ApiObject } from '../../src/kube/api.ts'
import { authoritativeKey } from '../../src/operator/delegation/authoritative-record.ts'
import type { GroupDirectory } from '../../src/operator/groups/group-set.ts'
import type { Reconciler } from '../../src/operator/reconcile/reconciler.ts'
import { DnsRecordView } from '../../src/operator/record/record-view.ts'
import { ToyCluster } from './operator-cluster.ts'
import { at, dnsRecord, secret } from './operator-objects.ts'
import { FakeClock } from './setup.ts'
import { toyReconciler } from './toy-reconciler.ts'

/** The name of the authoritative record of HOST. */
export const AUTHORITATIVE = 'authoritative-record-282f7a1y'
export const HOST = 'k.example.com'

/** A namespace with delegating records, and its operator. */
export class DelegationFixture {
  readonly cluster: ToyCluster
  readonly clock = new FakeClock()
  /** Authoritative records and owners whose endpoints were removed. */
  readonly departed: string[] = []
  readonly #reconciler: Reconciler

  constructor(cluster = new ToyCluster(), groups?: GroupDirectory) {
    this.cluster = cluster
    this.#reconciler = toyReconciler(cluster, this.clock, {
      listener: {
        reconciled: () => {},
        departed: (record, owners) => this.departed.push(`${record.name} ${owners.join()}`),
        forgot: () => {},
      },
      owners: { rivalOf: () => '', isPresent: (key, id) => isOwner(cluster, key, id) },
      ...(groups === undefined ? {} : { groups }),
    })
    this.putSecret(HOST)
  }

  putSecret(zones: string): void {
    const labels = { 'kuadrant.io/default-provider': 'true' }
    this.cluster.put(secret('a', 'coredns', { ZONES: zones }, { labels }))
  }

  /** Puts a delegating record; `endpoints` as `spec.endpoints` has them. */
  delegate(name: string, endpoints: readonly ApiObject[], rootHost = HOST): void {
    const { spec, ...rest } = dnsRecord({ name })
    const { providerRef: _, ...others } = spec as ApiObject
    this.cluster.put({ ...rest, spec: { ...others, delegate: true, rootHost, endpoints } })
  }

  /** Reconciles all records until the operator writes nothing; returns the writes. */
  async settle(): Promise<string[]> {
    const all: string[] = []
    for (let round = 0; round < 10; round++) {
      for (const key of [...this.cluster.records.keys()].sort())
        await this.#reconciler.reconcile(key)
      const writes = this.cluster.takeWrites()
      if (writes.length === 0) return all
      all.push(...writes)
    }
    throw new Error(`the operator does not settle: ${all.join(', ')}`)
  }

  /** As `settle`, after all delayed writes are due. */
  async settleLater(): Promise<string[]> {
    this.clock.monotonicMs += 60_000
    return this.settle()
  }

  /** Reconciles one record; true if a write fails because of a conflict. */
  async hasConflict(name: string): Promise<boolean> {
    try {
      await this.#reconciler.reconcile(`a/${name}`)
      return false
    } catch (error) {
      if (error instanceof ApiError && error.status === 409) return true
      throw error
    }
  }

  field(name: string, ...path: readonly string[]): unknown {
    return at(this.cluster.stored(`a/${name}`), ...path)
  }

  /** `name TYPE target,…` of the endpoints except ownership TXT records. */
  served(name = AUTHORITATIVE): readonly string[] {
    const endpoints = (this.field(name, 'spec', 'endpoints') ?? []) as readonly ApiObject[]
    return endpoints
      .filter(({ recordType }) => recordType !== 'TXT')
      .map(({ dnsName, recordType, targets }) => `${dnsName} ${recordType} ${targets}`)
  }

  /** `status reason: message` of a condition. */
  condition(name: string, type = 'Ready'): string {
    const conditions = (this.field(name, 'status', 'conditions') ?? []) as readonly ApiObject[]
    const found = conditions.find((one) => one.type === type)
    return found === undefined ? '' : `${found.status} ${found.reason}: ${found.message}`
  }
}

/** True if a delegating record of `cluster` has that owner id. */
export function isOwner({ records }: ToyCluster, authoritative: string, ownerId: string): boolean {
  return [...records.values()]
    .map((object) => new DnsRecordView(object))
    .filter(({ role }) => role === 'delegating')
    .some((record) => authoritativeKey(record) === authoritative && record.ownerId === ownerId)
}

export function address(dnsName: string, ...targets: readonly string[]): ApiObject {
  return { dnsName, recordType: 'A', recordTTL: 60, targets }
}
