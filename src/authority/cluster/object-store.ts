import type { ApiObject } from '../../kube/api.ts'
import { keyOf, splitKey } from '../../kube/object-key.ts'
import type { ServiceState } from './endpoints.ts'
import { packService, packSlice, podAddresses, serviceOfSlice, unpackService } from './packed.ts'

/** The kinds that are read, by their plural in the API. */
export type FollowedPlural = 'namespaces' | 'services' | 'endpointslices' | 'pods'

/** Identifies an object; `namespace` is '' for a Namespace. */
interface ObjectName {
  readonly namespace: string
  readonly name: string
}

/** The change of one Service; undefined = it has no records. */
export interface ServiceChange {
  readonly before: ServiceState | undefined
  readonly after: ServiceState | undefined
}

/** A Pod address that starts or ceases to exist in a namespace. */
export interface PodChange {
  readonly namespace: string
  readonly address: string
  readonly exists: boolean
}

export interface NamespaceChange {
  readonly namespace: string
  readonly isExposed: boolean
}

/** The changes since the changes before were taken. */
export interface ClusterChanges {
  readonly namespaces: readonly NamespaceChange[]
  readonly services: readonly ServiceChange[]
  readonly pods: readonly PodChange[]
}

interface Service {
  /** See packed.ts; '' = only slices are known. */
  packed: string
  /** In packed form, by name. */
  readonly slices: Map<string, string>
}

class NamespaceObjects {
  /** The namespace exists and its records are served. */
  isExposed = false
  readonly services = new Map<string, Service>()
  /** Name of the Service of each EndpointSlice. */
  readonly slices = new Map<string, string>()
  readonly pods = new Map<string, readonly string[]>()
  /** Number of Pods by address: Pods of the host's network share one. */
  readonly podCounts = new Map<string, number>()
}

/**
 * What records depend on of the objects of a cluster, in packed form. Collects the changes until
 * `take`, one per Service, however many events there were.
 */
export class ObjectStore {
  readonly #namespaces = new Map<string, NamespaceObjects>()
  /** Empty = all. */
  readonly #served: ReadonlySet<string>
  readonly #changedNamespaces = new Map<string, boolean>()
  /** State before the change, by namespace and Service. */
  readonly #changedServices = new Map<string, Map<string, ServiceState | undefined>>()
  /** Whether the address existed before the change, by namespace and address. */
  readonly #changedPods = new Map<string, Map<string, boolean>>()

  /** `served`: the namespaces whose records are served; empty = all. */
  constructor(served: ReadonlySet<string> = new Set()) {
    this.#served = served
  }

  get isChanged(): boolean {
    const sizes = [this.#changedNamespaces, this.#changedServices, this.#changedPods]
    return sizes.some(({ size }) => size > 0)
  }

  /** Applies the current state of an object. */
  put(plural: FollowedPlural, object: ApiObject): void {
    const { namespace, name } = splitKey(keyOf(object))
    if (plural === 'namespaces') this.#expose(name, true)
    else if (plural === 'services') this.#putService(namespace, name, packService(object))
    else if (plural === 'endpointslices') this.#putSlice(namespace, name, object)
    else this.#putPod(namespace, name, podAddresses(object))
  }

  remove(plural: FollowedPlural, { namespace, name }: ObjectName): void {
    if (plural === 'namespaces') this.#expose(name, false)
    else if (plural === 'services') this.#putService(namespace, name, '')
    else if (plural === 'endpointslices') this.#removeSlice(namespace, name)
    else this.#putPod(namespace, name, [])
  }

  /** Yields the keys of the known objects of a kind in `namespace`; '' = in all namespaces. */
  *keys(plural: FollowedPlural, namespace: string): Generator<string> {
    for (const [key, objects] of this.#namespaces) {
      if (plural === 'namespaces') {
        if (objects.isExposed) yield key
      } else if (namespace === '' || namespace === key) {
        const byPlural = { services: objects.services, endpointslices: objects.slices }
        const known = plural === 'pods' ? objects.pods : byPlural[plural]
        for (const name of known.keys()) yield `${key}/${name}`
      }
    }
  }

  /** Returns the changes since the last call. */
  take(): ClusterChanges {
    const namespaces = [...this.#changedNamespaces]
      .map(([namespace, before]) => ({ namespace, before, isExposed: this.isExposed(namespace) }))
      .filter(({ before, isExposed }) => before !== isExposed)
    const services: ServiceChange[] = []
    for (const [namespace, changed] of this.#changedServices) {
      for (const [name, before] of changed) {
        const after = this.#stateOf(namespace, name)
        if (!isSame(before, after)) services.push({ before, after })
      }
    }
    const pods: PodChange[] = []
    for (const [namespace, changed] of this.#changedPods) {
      for (const [address, before] of changed) {
        const exists = this.#hasPod(namespace, address)
        if (exists !== before) pods.push({ namespace, address, exists })
      }
    }
    this.#changedNamespaces.clear()
    this.#changedServices.clear()
    this.#changedPods.clear()
    return { namespaces, services, pods }
  }

  /** Returns everything that has records, as if it had changed. */
  all(): ClusterChanges {
    const namespaces: NamespaceChange[] = []
    const services: ServiceChange[] = []
    const pods: PodChange[] = []
    for (const [namespace, objects] of this.#namespaces) {
      if (!objects.isExposed) continue
      namespaces.push({ namespace, isExposed: true })
      for (const name of objects.services.keys()) {
        const after = this.#stateOf(namespace, name)
        if (after !== undefined) services.push({ before: undefined, after })
      }
      for (const address of objects.podCounts.keys()) {
        pods.push({ namespace, address, exists: true })
      }
    }
    return { namespaces, services, pods }
  }

  isExposed(namespace: string): boolean {
    return this.#namespaces.get(namespace)?.isExposed === true
  }

  isHeadless(namespace: string, service: string): boolean {
    const packed = this.#namespaces.get(namespace)?.services.get(service)?.packed ?? ''
    return packed !== '' && unpackService(packed).isHeadless
  }

  #expose(namespace: string, exists: boolean): void {
    const isServed = this.#served.size === 0 || this.#served.has(namespace)
    const objects = this.#objectsOf(namespace)
    const isExposed = exists && isServed
    if (objects.isExposed === isExposed) {
      this.#dropIfEmpty(namespace)
      return
    }
    if (!this.#changedNamespaces.has(namespace)) {
      this.#changedNamespaces.set(namespace, objects.isExposed)
    }
    for (const name of objects.services.keys()) this.#noteService(namespace, name)
    for (const address of objects.podCounts.keys()) this.#notePod(namespace, address)
    objects.isExposed = isExposed
    this.#dropIfEmpty(namespace)
  }

  #putService(namespace: string, name: string, packed: string): void {
    const objects = this.#objectsOf(namespace)
    const service = objects.services.get(name)
    if ((service?.packed ?? '') !== packed) {
      this.#noteService(namespace, name)
      if (service === undefined) objects.services.set(name, { packed, slices: new Map() })
      else service.packed = packed
    }
    this.#dropIfUnused(namespace, name)
  }

  #putSlice(namespace: string, name: string, object: ApiObject): void {
    const serviceName = serviceOfSlice(object)
    const objects = this.#objectsOf(namespace)
    const known = objects.slices.get(name)
    if (known !== undefined && known !== serviceName) this.#removeSlice(namespace, name)
    if (serviceName === '') return
    const packed = packSlice(object)
    const service = objects.services.get(serviceName) ?? { packed: '', slices: new Map() }
    if (service.slices.get(name) === packed) return
    this.#noteService(namespace, serviceName)
    objects.services.set(serviceName, service)
    service.slices.set(name, packed)
    objects.slices.set(name, serviceName)
  }

  #removeSlice(namespace: string, name: string): void {
    const objects = this.#objectsOf(namespace)
    const serviceName = objects.slices.get(name)
    if (serviceName !== undefined) {
      this.#noteService(namespace, serviceName)
      objects.slices.delete(name)
      objects.services.get(serviceName)?.slices.delete(name)
      this.#dropIfUnused(namespace, serviceName)
    }
    this.#dropIfEmpty(namespace)
  }

  #putPod(namespace: string, name: string, addresses: readonly string[]): void {
    const objects = this.#objectsOf(namespace)
    const before = objects.pods.get(name) ?? []
    if (before.join() !== addresses.join()) {
      for (const address of before) this.#countPod(namespace, objects, address, -1)
      for (const address of addresses) this.#countPod(namespace, objects, address, 1)
    }
    if (addresses.length === 0) objects.pods.delete(name)
    else objects.pods.set(name, addresses)
    this.#dropIfEmpty(namespace)
  }

  #countPod(namespace: string, objects: NamespaceObjects, address: string, by: 1 | -1): void {
    this.#notePod(namespace, address)
    const count = (objects.podCounts.get(address) ?? 0) + by
    if (count > 0) objects.podCounts.set(address, count)
    else objects.podCounts.delete(address)
  }

  #noteService(namespace: string, name: string): void {
    const changed = this.#changedServices.get(namespace) ?? new Map()
    this.#changedServices.set(namespace, changed)
    if (!changed.has(name)) changed.set(name, this.#stateOf(namespace, name))
  }

  #notePod(namespace: string, address: string): void {
    const changed = this.#changedPods.get(namespace) ?? new Map()
    this.#changedPods.set(namespace, changed)
    if (!changed.has(address)) changed.set(address, this.#hasPod(namespace, address))
  }

  #hasPod(namespace: string, address: string): boolean {
    const objects = this.#namespaces.get(namespace)
    return objects?.isExposed === true && objects.podCounts.has(address)
  }

  #stateOf(namespace: string, name: string): ServiceState | undefined {
    const objects = this.#namespaces.get(namespace)
    const service = objects?.services.get(name)
    if (objects?.isExposed !== true || service === undefined || service.packed === '') {
      return undefined
    }
    const slices = [...service.slices.values()]
    return { namespace, name, service: service.packed, slices }
  }

  #objectsOf(namespace: string): NamespaceObjects {
    const objects = this.#namespaces.get(namespace) ?? new NamespaceObjects()
    this.#namespaces.set(namespace, objects)
    return objects
  }

  #dropIfUnused(namespace: string, name: string): void {
    const { services } = this.#objectsOf(namespace)
    const service = services.get(name)
    if (service?.packed === '' && service.slices.size === 0) services.delete(name)
    this.#dropIfEmpty(namespace)
  }

  #dropIfEmpty(namespace: string): void {
    const { isExposed, services, pods } = this.#objectsOf(namespace)
    if (!isExposed && services.size === 0 && pods.size === 0) this.#namespaces.delete(namespace)
  }
}

function isSame(a: ServiceState | undefined, b: ServiceState | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  return a.service === b.service && a.slices.join() === b.slices.join()
}
