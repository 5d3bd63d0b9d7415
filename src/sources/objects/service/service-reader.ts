import { isDeepStrictEqual } from 'node:util'
import { SetsByKey } from '../../../base/sets-by-key.ts'
import type { ApiObject } from '../../../kube/api.ts'
import { keyOf, splitKey } from '../../../kube/object-key.ts'
import { ChangedObjects } from '../changed-objects.ts'
import { isObjectGone, keysIn } from '../object-fields.ts'
import type { ObjectReader, ObjectRecords, ObjectReference } from '../object-kind.ts'
import { referenceOf } from '../object-reference.ts'
import {
  type NodeParts,
  type PodParts,
  readNode,
  readPod,
  readSlice,
  type SliceParts,
} from './cluster-parts.ts'
import type { ServiceCluster } from './cluster-view.ts'
import { NODES, PODS, SERVICES, SLICES } from './plurals.ts'
import { makeServiceRecords, readService, type Service } from './service.ts'

/** Services, and the Nodes, EndpointSlices and Pods that some of them depend on. */
export class ServiceReader implements ObjectReader, ServiceCluster {
  /** Undefined = it has no host names. */
  readonly #services = new Map<string, Service | undefined>()
  readonly #nodes = new Map<string, NodeParts>()
  readonly #slices = new Map<string, SliceParts>()
  readonly #pods = new Map<string, PodParts>()
  /** Keys of EndpointSlices by their Service, and by their Pods. */
  readonly #slicesOfService = new SetsByKey()
  readonly #slicesOfPod = new SetsByKey()
  /** Services by the resource that they need. */
  readonly #needing = new SetsByKey()
  /** Services that have to be settled. */
  #pending = new Map<string, ObjectReference>()
  readonly #changed = new ChangedObjects()

  put(plural: string, object: ApiObject): void {
    const key = keyOf(object)
    if (isObjectGone(object) && plural === SERVICES) this.remove(plural, key)
    else if (plural === SERVICES) this.#putService(key, readService(object), referenceOf(object))
    else if (plural === NODES) this.#putNode(key, readNode(object))
    else if (plural === SLICES) this.#putSlice(key, readSlice(object))
    else if (plural === PODS) this.#putPod(key, readPod(object))
  }

  remove(plural: string, key: string): void {
    if (plural === SERVICES) this.#removeService(key)
    else if (plural === NODES) this.#putNode(key, undefined)
    else if (plural === SLICES) this.#putSlice(key, undefined)
    else if (plural === PODS) this.#putPod(key, undefined)
  }

  keys(plural: string, namespace: string): Iterable<string> {
    return keysIn(this.#mapOf(plural).keys(), namespace)
  }

  needs(plural: string): boolean {
    return this.#needing.has(plural)
  }

  settle(): readonly ObjectRecords[] {
    for (const [key, of] of this.#pending) {
      const service = this.#services.get(key)
      if (service === undefined) this.#changed.remove(key, of)
      else {
        this.#changed.make(key, of, (onProblem) => makeServiceRecords(service, this, onProblem))
      }
    }
    this.#pending = new Map()
    return this.#changed.take()
  }

  nodes(): Iterable<NodeParts> {
    return this.#nodes.values()
  }

  node(name: string): NodeParts | undefined {
    return this.#nodes.get(name)
  }

  slicesOf(service: string): readonly SliceParts[] {
    const keys = [...this.#slicesOfService.of(service)].sort()
    return keys.map((key) => this.#slices.get(key)!)
  }

  pod(key: string): PodParts | undefined {
    return this.#pods.get(key)
  }

  #mapOf(plural: string): ReadonlyMap<string, unknown> {
    if (plural === NODES) return this.#nodes
    if (plural === SLICES) return this.#slices
    return plural === PODS ? this.#pods : this.#services
  }

  #putService(key: string, service: Service | undefined, of: ObjectReference): void {
    this.#services.set(key, service)
    this.#setNeeds(key, service)
    this.#pending.set(key, of)
  }

  #setNeeds(key: string, service: Service | undefined): void {
    for (const plural of [NODES, SLICES, PODS]) {
      if (service?.needs.has(plural) === true) this.#needing.add(plural, key)
      else this.#needing.delete(plural, key)
    }
  }

  #removeService(key: string): void {
    const service = this.#services.get(key)
    this.#services.delete(key)
    this.#setNeeds(key, undefined)
    if (service !== undefined) this.#pending.set(key, referenceOf(service.object))
  }

  #putNode(name: string, node: NodeParts | undefined): void {
    if (!replace(this.#nodes, name, node)) return
    for (const key of this.#needing.of(NODES)) this.#touch(key, NODES)
  }

  #putSlice(key: string, slice: SliceParts | undefined): void {
    const before = this.#slices.get(key)
    if (!replace(this.#slices, key, slice)) return
    const { namespace } = splitKey(key)
    if (before !== undefined) {
      this.#slicesOfService.delete(before.service, key)
      for (const { pod } of before.endpoints) this.#slicesOfPod.delete(`${namespace}/${pod}`, key)
      this.#touch(before.service, SLICES)
    }
    if (slice !== undefined) {
      this.#slicesOfService.add(slice.service, key)
      for (const { pod } of slice.endpoints) this.#slicesOfPod.add(`${namespace}/${pod}`, key)
      this.#touch(slice.service, SLICES)
    }
  }

  #putPod(key: string, pod: PodParts | undefined): void {
    if (!replace(this.#pods, key, pod)) return
    for (const slice of this.#slicesOfPod.of(key)) {
      this.#touch(this.#slices.get(slice)!.service, PODS)
    }
  }

  /** An object of the resource changed that a Service may depend on. */
  #touch(key: string, plural: string): void {
    const service = this.#services.get(key)
    if (service?.needs.has(plural) !== true) return
    this.#pending.set(key, referenceOf(service.object))
  }
}

/** Replaces a value; undefined = removes it. Returns false if it is equal. */
function replace<T>(map: Map<string, T>, key: string, value: T | undefined): boolean {
  if (isDeepStrictEqual(map.get(key), value)) return false
  if (value === undefined) map.delete(key)
  else map.set(key, value)
  return true
}
