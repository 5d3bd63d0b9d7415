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

/** A resource, and the kinds that read it. */
interface Collection {
  readonly resource: ObjectResource
  readonly opened: OpenKind[]
  /** Empty = no kind needs it yet. */
  watches: readonly ListWatch[]
}

/** The objects of several kinds, from one watch of each resource and namespace. */
export class ObjectFeed {
  readonly #kinds: readonly OpenKind[]
  /** By `collectionOf`. */
  readonly #collections = new Map<string, Collection>()
  readonly #watch: WatchResource
  readonly #apply: ObjectFeedOptions['apply']

  constructor({ kinds, watch, apply }: ObjectFeedOptions) {
    this.#apply = apply
    this.#watch = watch
    this.#kinds = kinds.map((kind) => {
      return { kind, reader: kind.open(), watches: [], isRead: false }
    })
    for (const open of this.#kinds) {
      for (const resource of open.kind.resources) {
        const id = collectionOf(resource)
        const known = this.#collections.get(id) ?? { resource, opened: [], watches: [] }
        known.opened.push(open)
        this.#collections.set(id, known)
      }
    }
    for (const collection of this.#collections.values()) {
      const { opened, resource } = collection
      const isOnDemand = opened.every(({ kind }) => resourceIn(kind, resource).isOnDemand === true)
      if (!isOnDemand) this.#begin(collection)
    }
  }

  /** The watches of all resources that are needed so far. The caller runs those that exist at the start. */
  get watches(): readonly ListWatch[] {
    return [...this.#collections.values()].flatMap(({ watches }) => watches)
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
      if (open.isRead || !open.watches.every(isDone) || this.#beginNeeded(open)) continue
      open.isRead = true
      this.#settle([open])
    }
  }

  #begin(collection: Collection): void {
    const { resource, opened } = collection
    collection.watches = this.#watch(resource, (namespace) => {
      return this.#targetOf(resource, namespace, opened)
    })
    for (const open of opened) open.watches.push(...collection.watches)
  }

  /** Starts the watches that a kind needs from now on. Returns true if it has to wait for their objects. */
  #beginNeeded({ kind, reader }: OpenKind): boolean {
    let isWaiting = false
    for (const { isOnDemand, ...resource } of kind.resources) {
      const collection = this.#collections.get(collectionOf(resource))!
      const isNeeded = isOnDemand === true && reader.needs?.(resource.plural) === true
      if (!isNeeded || collection.watches.length > 0) continue
      this.#begin(collection)
      for (const open of collection.opened) open.isRead = false
      for (const watch of collection.watches) void watch.run()
      isWaiting = true
    }
    return isWaiting
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
      settle: () => this.#settle(opened.filter((one) => one.isRead && !this.#beginNeeded(one))),
    }
  }

  #settle(opened: readonly OpenKind[]): void {
    if (opened.length > 0) this.#apply(opened.flatMap(({ reader }) => reader.settle()))
  }
}

function resourceIn({ resources }: ObjectKind, { group, plural }: ObjectResource): ObjectResource {
  return resources.find((one) => one.group === group && one.plural === plural)!
}

/** Equal for all versions of a resource. */
function collectionOf({ group, plural }: Pick<ApiResource, 'group' | 'plural'>): string {
  return `${group}/${plural}`
}
