import type { ApiObject, ApiResource } from '../../kube/api.ts'
import type { ListWatch } from '../../kube/list-watch.ts'
import type { ObjectTarget } from '../../kube/object-sink.ts'
import type {
  ObjectKind,
  ObjectReader,
  ObjectRecords,
  ObjectResource,
} from '../objects/object-kind.ts'

interface OpenKind {
  readonly kind: ObjectKind
  readonly reader: ObjectReader
  readonly watches: ListWatch[]
  /** Its reader may be asked for records: all resources that the API has were listed. */
  isRead: boolean
}

/** Starts the watches of a resource, one for each namespace. `targetOf`: where the objects of a namespace are kept. */
type WatchResource = (
  resource: ObjectResource,
  targetOf: (namespace: string) => ObjectTarget,
) => readonly ListWatch[]

interface ObjectFeedOptions {
  readonly kinds: readonly ObjectKind[]
  readonly watch: WatchResource
  /** Receives what changed, after each batch. */
  readonly apply: (records: readonly ObjectRecords[]) => void
}

/** The objects of several kinds, from one watch of each resource and namespace. */
export class ObjectFeed {
  readonly watches: readonly ListWatch[]
  readonly #kinds: readonly OpenKind[]
  readonly #apply: ObjectFeedOptions['apply']

  constructor({ kinds, watch, apply }: ObjectFeedOptions) {
    this.#apply = apply
    this.#kinds = kinds.map((kind) => {
      return { kind, reader: kind.open(), watches: [], isRead: false }
    })
    const byResource = new Map<string, { resource: ObjectResource; opened: OpenKind[] }>()
    for (const open of this.#kinds) {
      for (const resource of open.kind.resources) {
        const collection = collectionOf(resource)
        const known = byResource.get(collection) ?? { resource, opened: [] }
        known.opened.push(open)
        byResource.set(collection, known)
      }
    }
    this.watches = [...byResource.values()].flatMap(({ resource, opened }) => {
      const watches = watch(resource, (namespace) => this.#targetOf(resource, namespace, opened))
      for (const open of opened) open.watches.push(...watches)
      return watches
    })
  }

  /** For each kind, the watches of its first resource. */
  get mainWatches(): readonly (readonly ListWatch[])[] {
    return this.#kinds.map(({ kind, watches }) => {
      const main = collectionOf(kind.resources[0]!)
      return watches.filter(({ resource }) => collectionOf(resource) === main)
    })
  }

  /** Reads the kinds whose resources were all listed, or are out of reach. Called after each list and failure. */
  progress(isDone: (watch: ListWatch) => boolean): void {
    for (const open of this.#kinds) {
      if (open.isRead || !open.watches.every(isDone)) continue
      open.isRead = true
      this.#settle([open])
    }
  }

  #targetOf(
    { plural, group, version, kind }: ObjectResource,
    namespace: string,
    opened: readonly OpenKind[],
  ): ObjectTarget {
    const apiVersion = group === '' ? version : `${group}/${version}`
    return {
      put: (object) => {
        // Items of a list may omit these fields.
        const typed: ApiObject = { apiVersion, ...object, kind }
        for (const { reader } of opened) reader.put(plural, typed)
      },
      remove: (key) => {
        for (const { reader } of opened) reader.remove(plural, key)
      },
      keys: () => new Set(opened.flatMap(({ reader }) => [...reader.keys(plural, namespace)])),
      settle: () => this.#settle(opened.filter(({ isRead }) => isRead)),
    }
  }

  #settle(opened: readonly OpenKind[]): void {
    if (opened.length > 0) this.#apply(opened.flatMap(({ reader }) => reader.settle()))
  }
}

/** Equal for all versions of a resource. */
function collectionOf({ group, plural }: Pick<ApiResource, 'group' | 'plural'>): string {
  return `${group}/${plural}`
}
