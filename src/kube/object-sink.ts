import type { ApiObject } from './api.ts'
import type { ListWatchSink } from './list-watch.ts'
import { keyOf } from './object-key.ts'
import type { WatchEvent } from './watch-event.ts'

/** Where the objects of one collection are kept. Keys: as in keyOf. */
export interface ObjectTarget {
  /** `isListed`: the object comes from a list, which may combine several changes. */
  put(object: ApiObject, isListed: boolean): void
  /** The object is deleted; its key may be unknown. */
  remove(key: string): void
  /** The keys of all known objects of the collection. */
  keys(): Iterable<string>
  /** Called after the changes of one page or batch. */
  settle?(): void
}

/** Passes objects on one by one. At the end of a list, removes those that the list lacks. */
export class ObjectSink implements ListWatchSink {
  readonly #target: ObjectTarget
  #present = new Set<string>()

  constructor(target: ObjectTarget) {
    this.#target = target
  }

  beginList(): void {
    this.#present = new Set()
  }

  put(objects: readonly ApiObject[]): void {
    for (const object of objects) {
      this.#present.add(keyOf(object))
      this.#target.put(object, true)
    }
    this.#target.settle?.()
  }

  endList(): void {
    const gone = [...this.#target.keys()].filter((key) => !this.#present.has(key))
    for (const key of gone) this.#target.remove(key)
    this.#present = new Set()
    this.#target.settle?.()
  }

  apply(events: readonly WatchEvent[]): void {
    for (const { isDeleted, object } of events) {
      if (isDeleted) this.#target.remove(keyOf(object))
      else this.#target.put(object, false)
    }
    this.#target.settle?.()
  }
}
