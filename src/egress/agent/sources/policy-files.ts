import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import { InputError } from '../../../base/errors.ts'
import { isSystemError } from '../../../base/system-error.ts'
import { type Guarded, guarding } from '../../../base/telemetry/guard.ts'
import type { Timers } from '../../../base/timers.ts'
import { listManifests, type ManifestStamp, noManifests } from '../../../yaml/directory.ts'
import { DirectoryWatch } from '../../../yaml/directory-watch.ts'
import { PolicyFeed, type PolicyFeedOptions } from './policy-feed.ts'
import {
  type ClientsListener,
  type ListedProblem,
  type PolicySource,
  printProblem,
} from './policy-source.ts'
import { type FiledObject, type PolicyFile, readPolicyFile } from './read-policy-file.ts'

/** Interval of a full check, in case the system did not report a change. */
const POLL_MS = 5000
/** How long a file must be missing or empty until its objects are removed: editors restore it. */
const GONE_MS = 500

interface PolicyFilesOptions extends PolicyFeedOptions {
  /** A file, or a folder with files *.yaml, *.yml and *.json. */
  readonly path: string
  readonly timers: Timers
}

/** What files have, for `sextant check`. */
interface ReadPolicies {
  /** `3 objects in 2 files, 1 client`. */
  readonly summary: string
  /** Unknown fields, and files that cannot be read. The source is not synced until it can read all files. */
  readonly faults: readonly InputError[]
  /** Files and objects that are ignored, and parts of policies without the effect that they say. */
  readonly warnings: readonly InputError[]
}

/** The stamp of a file that has been empty for long enough. */
const EMPTY = 'empty'

interface HeldFile {
  /** State of the file when it was last read; '' = it was not read. */
  stamp: string
  /** Its last valid content; undefined = it never was valid. */
  content: PolicyFile | undefined
  errors: readonly InputError[]
  /** Monotonic milliseconds; undefined = it is there. */
  goneMs: number | undefined
}

const UNREAD: HeldFile = { stamp: '', content: undefined, errors: [], goneMs: undefined }

/**
 * Pods, Namespaces and policies from files. The last valid state of a file stays while it is invalid.
 * Of objects with one name, that of the first file by path counts. Synced once each file was valid.
 */
export class PolicyFiles implements PolicySource {
  readonly #options: PolicyFilesOptions
  readonly #feed: PolicyFeed
  readonly #watch: DirectoryWatch
  readonly #guarded: Guarded
  readonly #files = new Map<string, HeldFile>()
  /** The objects that the feed has, by kind and key. */
  #objects: ReadonlyMap<string, FiledObject> = new Map()
  #byOrigin: ReadonlyMap<string, FiledObject> = new Map()
  #listError = ''
  /** Files that were skipped, or why none can be listed. */
  #warnings: readonly string[] = []
  /** True if something changed since the last `commit`. */
  #isChanged = false
  #isWatching = false
  #work: Promise<void> = Promise.resolve()
  #isDue = false
  #isStarted = false
  #isClosed = false
  #stopPolling: () => void = () => {}

  constructor(options: PolicyFilesOptions) {
    const { timers, path, ...parts } = options
    this.#options = options
    this.#guarded = guarding(parts.log, `Reading the policies of ${path}`)
    this.#feed = new PolicyFeed(parts, (object, field) => {
      return this.#byOrigin.get(object)?.placeOf(field) ?? ''
    })
    this.#watch = new DirectoryWatch(parts.clock, timers, {
      onDisturbance: () => this.#checkSoon(),
      onFailure: (reason) => parts.log.warning(reason, 'policy-files-unreadable'),
      // Each check finds files that were replaced.
      isAnother: () => false,
    })
  }

  start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    this.#stopPolling = this.#options.timers.every(POLL_MS, () => this.#checkSoon())
    this.#checkSoon()
  }

  /** Reads all files once, in place of `start`. */
  async load(): Promise<ReadPolicies> {
    await this.#check()
    const clients = this.#feed.compileNow().length
    const files = [...this.#files.values()]
    const empty = [...this.#files].filter(([, file]) => file.stamp === '')
    const isListed = this.#listError === ''
    const ofObjects = this.problems.filter(({ object }) => object !== '')
    const none = files.length === 0 ? [noManifests(this.#options.path)] : []
    const skipped = isListed ? [...none, ...this.#warnings] : []
    return {
      summary: `${this.#objects.size} objects in ${files.length} files, ${clients} clients`,
      faults: [
        ...(isListed ? [] : [new InputError(undefined, this.#listError)]),
        ...files.flatMap(({ errors }) => errors),
        ...ofObjects.filter(({ isUnknown }) => isUnknown).map(asError),
      ],
      warnings: [
        ...skipped.map((text) => new InputError(undefined, text)),
        ...ofObjects.filter(({ isUnknown }) => !isUnknown).map(asError),
        ...empty.map(([file]) => asError(emptyFile(file))),
      ],
    }
  }

  onChange(listener: ClientsListener): () => void {
    return this.#feed.onChange(listener)
  }

  get isSynced(): boolean {
    return this.#feed.isReady
  }

  get problems(): readonly ListedProblem[] {
    return this.#feed.problems
  }

  get reason(): string {
    if (this.#listError !== '') return this.#listError
    const errors = [...this.#files.values()].flatMap((file) => file.errors)
    const [first] = errors
    if (first !== undefined) {
      return errors.length === 1 ? first.print() : `${first.print()} and ${errors.length - 1} more`
    }
    return this.isSynced ? '' : 'policies are not read yet'
  }

  close(): void {
    this.#isClosed = true
    this.#stopPolling()
    this.#watch.close()
    this.#feed.close()
  }

  /** A check that has not started yet finds all changes until then. */
  #checkSoon(): void {
    if (this.#isDue) return
    this.#isDue = true
    this.#work = this.#work.then(async () => {
      this.#isDue = false
      if (!this.#isClosed) await this.#guarded(() => this.#check())
    })
  }

  async #check(): Promise<void> {
    const stamps = await this.#list()
    if (this.#isClosed || stamps === undefined) return
    for (const stamp of stamps.values()) {
      if (stamp.octets > 0) this.#read(stamp)
      else if (!this.#files.has(stamp.path)) this.#files.set(stamp.path, UNREAD)
    }
    for (const path of [...this.#files.keys()]) {
      const octets = stamps.get(path)?.octets
      if (octets === undefined || octets === 0) this.#miss(path, octets === 0)
    }
    this.#commit()
  }

  /** The files by path; undefined = they cannot be listed, and the known ones stay. */
  async #list(): Promise<ReadonlyMap<string, ManifestStamp> | undefined> {
    const { path } = this.#options
    try {
      const stats = statSync(path)
      const listing = stats.isDirectory()
        ? await listManifests(path, nextTurn)
        : { files: [stampOf(path, stats)], directories: [dirname(path)], warnings: [] }
      this.#listError = ''
      if (this.#isStarted) this.#follow(listing.directories)
      this.#setWarnings(listing.warnings)
      return new Map(listing.files.map((file) => [file.path, file]))
    } catch (error) {
      if (!isSystemError(error)) throw error
      const fault = `${path}: cannot be read: ${error.message}`
      this.#listError = fault
      this.#setWarnings([fault])
      this.#commit()
      return undefined
    }
  }

  #follow(directories: readonly string[]): void {
    this.#watch.setDirectories(directories)
    // The first check may have missed what changed before the watch.
    if (!this.#isWatching) this.#checkSoon()
    this.#isWatching = true
  }

  #setWarnings(warnings: readonly string[]): void {
    if (warnings.join() === this.#warnings.join()) return
    this.#warnings = warnings
    this.#isChanged = true
  }

  #read({ path, stamp }: ManifestStamp): void {
    this.#watch.willCheck(path)
    const known = this.#files.get(path) ?? UNREAD
    const file = { ...known, stamp, goneMs: undefined }
    this.#files.set(path, file)
    if (known.stamp === stamp) return
    this.#isChanged = true
    file.errors = []
    try {
      file.content = readPolicyFile(path)
    } catch (error) {
      if (!(error instanceof InputError)) throw error
      file.errors = error.all()
    }
  }

  /** Removes the objects of a file that has been missing or empty for long enough. */
  #miss(path: string, isEmpty: boolean): void {
    const { clock, timers } = this.#options
    const file = this.#files.get(path)!
    if (isEmpty && file.stamp === EMPTY) return
    const nowMs = clock.monotonic()
    const { goneMs = nowMs } = file
    const leftMs = goneMs + GONE_MS - nowMs
    if (leftMs > 0) {
      this.#files.set(path, { ...file, goneMs })
      timers.after(leftMs, () => this.#checkSoon())
      return
    }
    this.#isChanged = true
    const content = { objects: [], problems: [emptyFile(path)] }
    if (isEmpty) this.#files.set(path, { ...UNREAD, stamp: EMPTY, content, goneMs })
    else this.#files.delete(path)
  }

  #commit(): void {
    if (this.#isChanged) this.#passOn()
    this.#isChanged = false
    const areValid = [...this.#files.values()].every(({ content }) => content !== undefined)
    if (this.#listError === '' && areValid) this.#feed.setReady()
  }

  #passOn(): void {
    const { objects, problems } = this.#collect()
    const before = this.#objects
    this.#objects = objects
    this.#byOrigin = new Map([...objects.values()].map((one) => [one.origin, one]))
    for (const [key, { kind, object }] of objects) {
      if (before.get(key)?.object !== object) this.#feed.put(kind, object)
    }
    for (const [key, one] of before) if (!objects.has(key)) this.#feed.remove(one.kind, one.key)
    // Also the places of other problems may have changed.
    this.#feed.setOtherProblems(problems)
  }

  #collect(): {
    readonly objects: ReadonlyMap<string, FiledObject>
    readonly problems: readonly ListedProblem[]
  } {
    const objects = new Map<string, FiledObject>()
    const problems = this.#warnings.map((message) => problemOf(message))
    const files = [...this.#files].sort(([a], [b]) => (a < b ? -1 : 1))
    for (const [, { content, errors }] of files) {
      for (const { message, position } of errors) {
        const kept = content === undefined ? '' : '; the last valid state of the file stays'
        const place = position === undefined ? '' : `${position.file}:${position.line}`
        problems.push({ ...problemOf(`${message}${kept}`), place })
      }
      problems.push(...(content?.problems ?? []))
      for (const one of content?.objects ?? []) {
        const key = `${one.kind.kind}.${one.kind.resource.group} ${one.key}`
        const first = objects.get(key)
        if (first === undefined) objects.set(key, one)
        else {
          const message = `ignored: ${first.placeOf(['metadata', 'name'])} has it too`
          const place = one.placeOf(['metadata', 'name'])
          problems.push({ object: one.origin, field: 'metadata.name', message, place })
        }
      }
    }
    return { objects, problems }
  }
}

function emptyFile(path: string): ListedProblem {
  return { ...problemOf('the file is empty: it has no objects'), place: `${path}:1` }
}

function problemOf(message: string): ListedProblem {
  return { object: '', field: '', message, place: '' }
}

function asError(problem: ListedProblem): InputError {
  const [, file, line] = /^(.*):(\d+)$/.exec(problem.place) ?? []
  const position = file === undefined ? undefined : { file, line: Number(line) }
  return new InputError(position, printProblem({ ...problem, place: '' }))
}

function stampOf(path: string, stats: ReturnType<typeof statSync> & object): ManifestStamp {
  const { mtimeMs, ctimeMs, size, ino } = stats
  const stamp = `${mtimeMs} ${ctimeMs} ${size} ${ino}`
  return { path, stamp, octets: Number(size), inode: Number(ino) }
}

/** Resolves after due timers and I/O have run. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
