import { type ApiObject, textOf } from '../kube/api.ts'
import type { Informer } from '../kube/informer.ts'
import { bareHost } from '../peering/peer-status.ts'
import { HostIndex, namesAbove } from '../peering/trust/host-index.ts'
import type { OwnNames } from '../peering/trust/screen-shares.ts'
import { isDerived } from './judge.ts'
import { itemsOf, mappingOf } from './object.ts'

/** Which names the records of the cluster have: what peers report of one must not touch another. */
export class RecordNames {
  /** By root host without `*.`: records by key. */
  readonly #hosts = new Map<string, Map<string, ApiObject>>()
  readonly #index = new HostIndex()
  readonly #names = new WeakMap<ApiObject, ReadonlySet<string>>()

  /**
   * Notes the records of an informer. Calls `onNews` with the other records of the host of one that changed, and of hosts
   * above it. Returns the function that ends this.
   */
  watch(records: Pick<Informer, 'subscribe'>, onNews: (key: string) => void): () => void {
    return records.subscribe({
      onAdd: (key, object) => {
        this.add(key, object)
        this.#report(key, object, onNews)
      },
      onUpdate: (key, object, before) => {
        this.remove(key, before)
        this.add(key, object)
        if (object.spec === before.spec || generationOf(object) === generationOf(before)) return
        this.#report(key, before, onNews)
        this.#report(key, object, onNews)
      },
      onDelete: (key, before) => {
        this.remove(key, before)
        this.#report(key, before, onNews)
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
    } else records.set(key, object)
  }

  remove(key: string, object: ApiObject): void {
    const host = hostOf(object)
    const records = this.#hosts.get(host)
    if (records === undefined || !records.delete(key) || records.size > 0) return
    this.#hosts.delete(host)
    this.#index.remove(host)
  }

  /** As seen from the record with that key. `zones`: apexes, lower case, without a final dot. */
  beside(key: string, zones: readonly string[]): OwnNames {
    return {
      isApex: (name) => zones.includes(name),
      hasHost: (host) => this.#hosts.has(host),
      hasHostBelow: (name) => this.#index.hasBelow(name),
      namesElsewhere: (host) => {
        const others = [...(this.#hosts.get(host) ?? [])].filter(([other]) => other !== key)
        if (others.length === 1) return this.#namesOf(others[0]![1])
        return new Set(others.flatMap(([, object]) => [...this.#namesOf(object)]))
      },
    }
  }

  #report(changed: string, object: ApiObject, onNews: (key: string) => void): void {
    const host = hostOf(object)
    for (const name of [host, ...namesAbove(host)]) {
      for (const key of this.#hosts.get(name)?.keys() ?? []) if (key !== changed) onNews(key)
    }
  }

  #namesOf(object: ApiObject): ReadonlySet<string> {
    const known = this.#names.get(object)
    if (known !== undefined) return known
    const { rootHost } = mappingOf(object, 'spec')
    const texts = itemsOf(mappingOf(object, 'spec'), 'endpoints').map((e) => textOf(e, 'dnsName'))
    if (typeof rootHost === 'string' && rootHost.startsWith('*.')) texts.push(rootHost)
    const names = new Set(texts.map(canonical))
    this.#names.set(object, names)
    return names
  }
}

/** '' = the object was not made by a user, or names no host. */
function hostOf(object: ApiObject): string {
  if (isDerived(object)) return ''
  return bareHost(canonical(textOf(mappingOf(object, 'spec'), 'rootHost')))
}

function canonical(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
}

function generationOf(object: ApiObject): string {
  return String(mappingOf(object, 'metadata').generation ?? '')
}
