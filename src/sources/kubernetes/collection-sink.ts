import type { InputError } from '../../base/errors.ts'
import type { ApiObject } from '../../kube/api.ts'
import type { ListWatchSink } from '../../kube/list-watch.ts'
import type { WatchEvent } from '../../kube/watch-event.ts'
import type { ClusterStore, Plural } from './cluster-store.ts'

/** Puts one collection of the API, of one namespace or all, into a store. */
export class CollectionSink implements ListWatchSink {
  readonly #store: ClusterStore
  readonly #plural: Plural
  /** '' = all namespaces. */
  readonly #namespace: string
  readonly #onChange: (refusals: readonly InputError[]) => void
  #present = new Set<string>()

  /** `onChange`: called when the store must settle, with the new refusals. */
  constructor(
    store: ClusterStore,
    plural: Plural,
    namespace: string,
    onChange: (refusals: readonly InputError[]) => void,
  ) {
    this.#store = store
    this.#plural = plural
    this.#namespace = namespace
    this.#onChange = onChange
  }

  beginList(): void {
    this.#present = new Set()
  }

  put(objects: readonly ApiObject[]): void {
    const refusals: InputError[] = []
    for (const object of objects) this.#present.add(this.#put(object, refusals))
    this.#onChange(refusals)
  }

  endList(): void {
    this.#store.keepOnly(this.#plural, this.#namespace, this.#present)
    this.#present = new Set()
    this.#onChange([])
  }

  apply(events: readonly WatchEvent[]): void {
    const refusals: InputError[] = []
    for (const { isDeleted, object } of events) {
      if (isDeleted) this.#store.remove(this.#plural, object)
      else this.#put(object, refusals)
    }
    this.#onChange(refusals)
  }

  #put(object: ApiObject, refusals: InputError[]): string {
    const { key, refusal } = this.#store.put(this.#plural, object)
    if (refusal !== undefined) refusals.push(refusal)
    return key
  }
}
