import { ListWatch } from '../../kube/list-watch.ts'
import { ObjectSink, type ObjectTarget } from '../../kube/object-sink.ts'
import { ObjectFeed } from '../../sources/kubernetes/object-feed.ts'
import type {
  ObjectKind,
  ObjectRecords,
  ObjectResource,
} from '../../sources/objects/object-kind.ts'
import type { ClusterEnv } from '../cluster/cluster.ts'

/** Responses that are needed: an API server that is starting does not know a kind yet, or refuses it. */
const REFUSALS = 3
const NOT_FOUND = 404
const FORBIDDEN = 403

interface FollowedKindsOptions {
  readonly env: ClusterEnv
  readonly kinds: readonly ObjectKind[]
  readonly onRecords: (records: readonly ObjectRecords[]) => void
  /** All objects of a kind were read, for the first time. */
  readonly onRead: (word: string) => void
  /** A list ended or failed. */
  readonly onProgress: () => void
  /** A watch is established again. */
  readonly onReturn: () => void
  /** Returns where the objects of a resource are kept in addition. */
  readonly observing: (resource: ObjectResource, target: ObjectTarget) => ObjectTarget
}

interface FollowedKind {
  readonly word: string
  /** The watches of its first resource. */
  readonly main: readonly ListWatch[]
  /** Its watches so far: some begin when they are needed. */
  readonly all: () => readonly ListWatch[]
}

/** The objects of the kinds of `--sources`, and which of these kinds are completely read. */
export class FollowedKinds {
  readonly #options: FollowedKindsOptions
  readonly #feed: ObjectFeed
  readonly #kinds: readonly FollowedKind[]
  readonly #read = new Set<string>()

  constructor(options: FollowedKindsOptions) {
    this.#options = options
    const { kinds, onRecords } = options
    this.#feed = new ObjectFeed({
      kinds,
      apply: onRecords,
      watch: (resource, targetOf) => this.#watch(resource, targetOf),
    })
    const watchesOf = ({ group, plural }: ObjectResource): readonly ListWatch[] =>
      this.watches.filter(({ resource }) => resource.group === group && resource.plural === plural)
    this.#kinds = kinds.map(({ word, resources }) => {
      return { word, main: watchesOf(resources[0]!), all: () => resources.flatMap(watchesOf) }
    })
  }

  get watches(): readonly ListWatch[] {
    return this.#feed.watches
  }

  start(): void {
    for (const watch of this.watches) void watch.run()
  }

  close(): void {
    for (const watch of this.watches) watch.close()
  }

  /** True once all objects of the kind were read. */
  isRead(word: string): boolean {
    return this.#read.has(word)
  }

  /** True once the API has answered for every kind: it was listed, is not installed, or may not be read. */
  get isAnswered(): boolean {
    return this.watches.every((watch) => watch.isSynced || countOf(watch) >= REFUSALS)
  }

  /** Why a kind is not followed just now; '' = all are. */
  get reason(): string {
    for (const { word, main, all } of this.#kinds) {
      // A cluster may lack the definitions of some resources of a kind.
      const needed = this.isRead(word) ? [...main, ...all().filter(isRefused)] : all()
      const failed = needed.find(({ reason }) => reason !== '')
      if (failed !== undefined) return `source ${word}: ${failed.reason}`
    }
    return ''
  }

  #watch(
    resource: ObjectResource,
    targetOf: (namespace: string) => ObjectTarget,
  ): readonly ListWatch[] {
    const { env, onReturn, observing } = this.#options
    const { namespaces, log } = env
    const isWhole = resource.isClusterScoped === true || namespaces.length === 0
    // Few clusters have the definitions of all resources.
    const isMain = this.#options.kinds.some(({ resources }) => resources[0] === resource)
    return (isWhole ? [''] : [...new Set(namespaces)]).map((namespace) => {
      return new ListWatch({
        ...env,
        log: isMain ? log : { ...log, warning: log.info },
        resource,
        equalVersions: resource.equalVersions,
        namespace,
        labelSelector: '',
        sink: new ObjectSink(observing(resource, targetOf(namespace))),
        onProgress: () => this.#progress(),
        onReturn,
      })
    })
  }

  #progress(): void {
    this.#feed.progress(isDone)
    for (const { word, main, all } of this.#kinds) {
      const isRead = main.every(({ isSynced }) => isSynced) && all().every(isDone)
      if (!isRead || this.#read.has(word)) continue
      this.#read.add(word)
      this.#options.onRead(word)
    }
    this.#options.onProgress()
  }
}

/** True if the objects were listed, or the API lacks their definition. */
function isDone(watch: ListWatch): boolean {
  const isMissing = watch.failureStatus === NOT_FOUND && countOf(watch) >= REFUSALS
  return watch.isSynced || isMissing
}

function isRefused({ failureStatus }: ListWatch): boolean {
  return failureStatus !== NOT_FOUND
}

function countOf({ counts: { failures } }: ListWatch): number {
  return (failures.get(FORBIDDEN) ?? 0) + (failures.get(NOT_FOUND) ?? 0)
}
