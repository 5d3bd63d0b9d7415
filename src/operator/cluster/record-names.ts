import type { ApiObject } from '../../kube/api.ts'
import type { Informer } from '../../kube/informer.ts'
import { bareHost } from '../../peering/peer-status.ts'
import { namesAbove } from '../../peering/trust/host-index.ts'
import { NameCounts, NO_NAMES } from '../../peering/trust/name-counts.ts'
import type { OwnNames } from '../../peering/trust/screen-site-states.ts'
import { DnsRecordView } from '../record/record-view.ts'
import { normalizeName } from '../record/spec-endpoint.ts'
import { NameTree } from './name-tree.ts'

/**
 * The names of all records in the cluster: a peer's report on one record must not affect another.
 */
export class RecordNames {
  /** By root host without `*.`: records by key. */
  readonly #hosts = new Map<string, Map<string, ApiObject>>()
  readonly #index = new NameTree()
  /** By host, over all of its records. Only hosts that were queried are cached. */
  readonly #counts = new Map<string, NameCounts>()

  /**
   * Indexes the records of an informer. When a record changes, `onEvent` is called with the other
   * records of its host and of hosts above it, and with those of other namespaces below it. The returned
   * function unsubscribes.
   */
  watch(records: Pick<Informer, 'subscribe'>, onEvent: (key: string) => void): () => void {
    return records.subscribe({
      onAdd: (key, object) => {
        this.add(key, object)
        this.#report(key, object, onEvent)
      },
      onUpdate: (key, object, before) => {
        this.remove(key, before)
        this.add(key, object)
        if (object.spec === before.spec || generationOf(object) === generationOf(before)) return
        this.#report(key, before, onEvent)
        this.#report(key, object, onEvent)
      },
      onDelete: (key, before) => {
        this.remove(key, before)
        this.#report(key, before, onEvent)
      },
    })
  }

  add(key: string, object: ApiObject): void {
    const host = hostOf(object)
    if (host === '') return
    const records = this.#hosts.get(host)
    if (records === undefined) {
      this.#hosts.set(host, new Map([[key, object]]))
      this.#index.add(host)
      return
    }
    const before = records.get(key)
    records.set(key, object)
    const counts = this.#counts.get(host)
    if (before !== undefined) counts?.remove(namesOf(before))
    counts?.add(namesOf(object))
  }

  remove(key: string, object: ApiObject): void {
    const host = hostOf(object)
    const records = this.#hosts.get(host)
    const before = records?.get(key)
    if (records === undefined || before === undefined) return
    records.delete(key)
    if (records.size > 0) {
      this.#counts.get(host)?.remove(namesOf(before))
      return
    }
    this.#hosts.delete(host)
    this.#counts.delete(host)
    this.#index.remove(host)
  }

  /** Names beside the record with that key. `zones`: apexes, lower case, without the final dot. */
  beside(key: string, zones: readonly string[]): OwnNames {
    return {
      isApex: (name) => zones.includes(name),
      hasHost: (host) => this.#hosts.has(host),
      hasHostBelow: (name) => this.#index.hasBelow(name),
      namesElsewhere: (host) => {
        const records = this.#hosts.get(host)
        if (records === undefined) return NO_NAMES
        const merged = records.get(key)
        if (merged === undefined) return this.#countsOf(host, records)
        if (records.size === 1) return NO_NAMES
        return this.#countsOf(host, records).except(counted([merged]))
      },
    }
  }

  /** Keys of the records of a host. */
  keysAt(host: string): Iterable<string> {
    return this.#hosts.get(host)?.keys() ?? []
  }

  /** Keys of the records of hosts below a name. */
  *keysBelow(name: string): Generator<string> {
    for (const host of this.#index.below(name)) yield* this.keysAt(host)
  }

  #report(changed: string, object: ApiObject, onEvent: (key: string) => void): void {
    const host = hostOf(object)
    if (host === '') return
    // A host belongs to one namespace with the names below it.
    const [namespace] = changed.split('/', 1)
    for (const key of this.keysBelow(host)) if (!key.startsWith(`${namespace}/`)) onEvent(key)
    for (const name of [host, ...namesAbove(host)]) {
      for (const key of this.#hosts.get(name)?.keys() ?? []) if (key !== changed) onEvent(key)
    }
  }

  #countsOf(host: string, records: ReadonlyMap<string, ApiObject>): NameCounts {
    const known = this.#counts.get(host)
    if (known !== undefined) return known
    const counts = counted(records.values())
    this.#counts.set(host, counts)
    return counts
  }
}

function counted(objects: Iterable<ApiObject>): NameCounts {
  const counts = new NameCounts()
  for (const object of objects) counts.add(namesOf(object))
  return counts
}

/** Without duplicates. */
function namesOf(object: ApiObject): ReadonlySet<string> {
  const { rootHost, endpoints } = new DnsRecordView(object)
  const names = new Set(endpoints.map(({ dnsName }) => dnsName))
  if (rootHost.startsWith('*.')) names.add(normalizeName(rootHost))
  return names
}

/** '' = the object is derived, or names no host. */
function hostOf(object: ApiObject): string {
  const { role, rootHost } = new DnsRecordView(object)
  return role === 'derived' ? '' : bareHost(normalizeName(rootHost))
}

function generationOf(object: ApiObject): number {
  return new DnsRecordView(object).generation
}
