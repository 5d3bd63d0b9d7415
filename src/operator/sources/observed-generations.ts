import type { ApiObject } from '../../kube/api.ts'
import { keyOf } from '../../kube/object-key.ts'
import type { ObjectTarget } from '../../kube/object-sink.ts'
import { mappingOf, metadataOf } from '../record/fields.ts'

/** Its status belongs to the program that publishes it. Those of Gateways, Services and Ingresses belong to others. */
export const DNS_ENDPOINTS = {
  group: 'externaldns.k8s.io',
  version: 'v1alpha1',
  plural: 'dnsendpoints',
  kind: 'DNSEndpoint',
}

interface Generations {
  readonly generation: number
  readonly observed: number
}

/** The generations of DNSEndpoints, and those in their statuses. */
export class ObservedGenerations {
  readonly #objects = new Map<string, Generations>()
  readonly #onStale: (key: string) => void

  /** `onStale`: called with the key of an object whose status is older than the object. */
  constructor(onStale: (key: string) => void) {
    this.#onStale = onStale
  }

  /** Reads the objects that `target` gets. */
  reading(target: ObjectTarget): ObjectTarget {
    return {
      put: (object, isListed) => {
        target.put(object, isListed)
        this.#note(object)
      },
      remove: (key) => {
        target.remove(key)
        this.#objects.delete(key)
      },
      keys: () => target.keys(),
      settle: () => target.settle?.(),
    }
  }

  /** The generation to write into the status; undefined = none. */
  missing(key: string): number | undefined {
    const { generation = 0, observed = 0 } = this.#objects.get(key) ?? {}
    return generation === observed ? undefined : generation
  }

  #note(object: ApiObject): void {
    const key = keyOf(object)
    const generation = Number(metadataOf(object).generation ?? 0)
    const observed = Number(mappingOf(object, 'status').observedGeneration ?? 0)
    this.#objects.set(key, { generation, observed })
    if (generation !== observed) this.#onStale(key)
  }
}
