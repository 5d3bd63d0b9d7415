import { realpathSync } from 'node:fs'
import type { Clock } from '../../base/clock.ts'
import { InputError } from '../../base/errors.ts'
import { plural } from '../../base/plural.ts'
import { runInSlices } from '../../base/slices.ts'
import { isSystemError } from '../../base/system-error.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import { oneProblem, type ProblemGroup, problemOf } from '../../base/telemetry/problems.ts'
import { beginProgress } from '../../base/telemetry/progress.ts'
import type { Timers } from '../../base/timers.ts'
import { AddressHealth } from '../../health/address-health.ts'
import type { HealthProbe } from '../../records/dns-record.ts'
import type { ProbeSource, RecordChange, StoredRecord } from '../../records/record-source.ts'
import type { IgnoredPart } from '../../records/validate/ignored.ts'
import { listManifests, type ManifestStamp, stampManifest } from '../../yaml/directory.ts'
import { DirectoryWatch, type Disturbance } from '../../yaml/directory-watch.ts'
import type { FollowedSource } from '../source.ts'
import type { IgnoredParts } from './file-reading.ts'
import { FileWork } from './file-work.ts'
import { directoryError, type ManifestFile, unforeseen } from './manifest-file.ts'
import { ManifestLog } from './manifest-log.ts'
import { type HeldPlace, ManifestStore } from './manifest-store.ts'
import { OtherKinds } from './other-kinds.ts'
import { readManifestFile } from './read-file.ts'
import { SeenFiles } from './seen-files.ts'

/** Interval of a full check, in case the system did not report a change. */
const POLL_MS = 5000
const PROGRESS_MS = 1000
/** Longest run before queries are answered. */
const SLICE_MS = 5

export interface ManifestSourceOptions {
  /** The path as the operator wrote it, relative or absolute. Messages use it to name files. */
  readonly directory: string
  readonly log: Logger
  readonly clock: Clock
  readonly timers: Timers
  /**
   * For `sextant check`: receives every ignored part. If set, all faults of a record are reported.
   */
  readonly onIgnored?: (warning: InputError, part: IgnoredPart) => void
}

/** The DNSRecords of a directory of manifests, kept up to date with the files. */
export class ManifestSource implements FollowedSource, ProbeSource {
  readonly probed = this
  readonly #options: ManifestSourceOptions
  readonly health = new AddressHealth()
  readonly #store = new ManifestStore(this.health)
  readonly #seen: SeenFiles
  readonly #work: FileWork
  readonly #lines: ManifestLog
  readonly #listeners = new Set<(changes: readonly RecordChange[]) => void>()
  readonly #probeListeners = new Set<() => void>()
  readonly #watch: DirectoryWatch
  /** Objects of other kinds that were read so far. */
  readonly others = new OtherKinds()
  /** When the last survey started. */
  #surveyedMs = Number.NEGATIVE_INFINITY
  #stopPolling: () => void = () => {}
  #directoryError: InputError | undefined
  #sliceStartMs = 0
  /** True while the changes of one batch of files are published. */
  isChanging = false
  #markSynced: () => void = () => {}
  readonly #synced = new Promise<void>((resolve) => (this.#markSynced = resolve))
  /** Number of files read since the start, for tests and metrics. */
  filesRead = 0

  constructor(options: ManifestSourceOptions) {
    this.#options = options
    this.#lines = new ManifestLog(options)
    const { clock, timers, directory, log } = options
    this.#work = new FileWork(directory, log, () => this.#surveyFiles())
    this.#seen = new SeenFiles({
      ...{ clock, timers },
      writtenMs: () => this.#watch.writtenMs,
      recheck: (paths) => this.#checkSoon({ paths: new Set(paths), isEverything: false }),
    })
    this.#watch = new DirectoryWatch(clock, timers, {
      onDisturbance: (disturbance) => this.#checkSoon(disturbance),
      onFailure: (reason) => this.#lines.warnOnce(reason),
      // A file seen before the watch started may have been removed since without an event.
      isAnother: (path, watchedMs) => watchedMs < this.#surveyedMs && this.#seen.isReplaced(path),
    })
  }

  get recordCount(): number {
    return this.#store.recordCount
  }

  get fileCount(): number {
    return this.#store.fileCount
  }

  get refusedCount(): number {
    return this.#store.faults.refusedCount
  }

  records(): Iterable<StoredRecord> {
    return this.#store.records()
  }

  find(key: string): StoredRecord | undefined {
    return this.#store.find(key)
  }

  /** Place of the served record with that key. */
  placeOf(key: string): HeldPlace | undefined {
    return this.#store.placeOf(key)
  }

  /** Place of the served record of each key. Visits every file: for `sextant check`. */
  places(): Map<string, HeldPlace> {
    return this.#store.places()
  }

  problems(): InputError[] {
    const problems = this.#store.faults.all()
    return this.#directoryError === undefined ? problems : [this.#directoryError, ...problems]
  }

  problemGroups(of: string): ProblemGroup[] {
    const groups = this.#store.problemGroups(of)
    const error = this.#directoryError
    if (error === undefined) return groups
    const problem = problemOf(error, this.#options.directory)
    return [oneProblem('manifest', `${of} itself`, problem), ...groups]
  }

  printPlace(key: string): string {
    const { file, line } = this.#store.placeOf(key) ?? {}
    return file === undefined ? '' : `${file}:${line}`
  }

  /**
   * Returns why the source is not ready: files with faults of their own. Refused records do not
   * count, because the others are still served.
   */
  unreadyReason(): string {
    const { faults } = this.#store
    const first = this.#directoryError ?? faults.firstOfFiles()
    if (first === undefined) return ''
    const count = faults.fileFaultCount + (this.#directoryError === undefined ? 0 : 1)
    return count === 1 ? first.print() : `${first.print()} and ${count - 1} more`
  }

  get badFileCount(): number {
    return this.#store.faults.fileCount + (this.#directoryError === undefined ? 0 : 1)
  }

  note(): string {
    return ''
  }

  subscribe(listener: (changes: readonly RecordChange[]) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  probes(): Iterable<HealthProbe> {
    return this.#store.probes()
  }

  onProbes(listener: () => void): () => void {
    this.#probeListeners.add(listener)
    return () => this.#probeListeners.delete(listener)
  }

  async start(): Promise<void> {
    await this.load()
    await this.follow()
    this.#markSynced()
  }

  synced(): Promise<void> {
    return this.#synced
  }

  /** Reads everything once. Throws InputError if the directory cannot be listed. */
  async load(): Promise<void> {
    const { directory, log, clock } = this.#options
    const startMs = clock.monotonic()
    let shownMs = startMs
    const listing = await this.#list()
    for (const [index, file] of listing.files.entries()) {
      if (this.#work.isClosed) return
      await this.#read(file)
      await this.#pause()
      const nowMs = clock.monotonic()
      if (nowMs - shownMs < PROGRESS_MS) continue
      shownMs = nowMs
      const progress = `${index + 1} of ${listing.files.length} files, ${this.recordCount} records`
      log.info(`reading manifests in ${directory}: ${progress}`, 'manifests-reading')
    }
    const seconds = ((clock.monotonic() - startMs) / 1000).toFixed(2)
    const refused = this.refusedCount === 0 ? '' : `, ${this.refusedCount} refused`
    const found = `${plural(this.recordCount, 'record')}${refused} from ${plural(this.fileCount, 'file')}`
    log.info(`read ${found} in ${directory} in ${seconds} s`, 'manifests-read')
    if (this.others.count > 0)
      log.info(`${directory}: ${this.others.print()}`, 'manifests-unwatched')
    this.#logProblems()
  }

  /** Starts the watch of the files. */
  async follow(): Promise<void> {
    const listing = await this.#list()
    this.#watch.setDirectories(listing.directories)
    this.#stopPolling = this.#options.timers.every(POLL_MS, () => this.#work.surveySoon())
    // Finds changes between the load and the start of the watch.
    this.#work.surveySoon()
  }

  /** Resolves once all changes noticed so far are processed. */
  settled(): Promise<void> {
    return this.#work.settled()
  }

  close(): void {
    this.#work.close()
    this.#watch.close()
    this.#lines.close()
    this.#stopPolling()
    this.#listeners.clear()
    this.#probeListeners.clear()
  }

  async #list(): ReturnType<typeof listManifests> {
    const { directory } = this.#options
    try {
      const listing = await listManifests(directory, nextTurn)
      for (const warning of listing.warnings) this.#lines.warnOnce(warning)
      this.#directoryError = undefined
      return listing
    } catch (error) {
      if (!isSystemError(error)) throw error
      throw directoryError(directory, error)
    }
  }

  #checkSoon({ paths, isEverything }: Disturbance): void {
    if (paths.size > 0) void this.#work.check(() => this.#checkPaths([...paths]))
    if (isEverything) this.#work.surveySoon()
  }

  async #checkPaths(paths: readonly string[]): Promise<void> {
    const { probesVersion } = this.#store
    const base = this.#findBase()
    if (base === undefined) return this.#work.surveySoon()
    this.isChanging = true
    const progress = paths.length > 1 ? beginProgress(this.#options.directory) : undefined
    try {
      for (const [i, path] of paths.entries()) {
        if (this.#work.isClosed) return
        progress?.at(i, paths.length)
        await this.#checkPath(path, base)
        await this.#pause()
      }
    } finally {
      progress?.end()
      this.isChanging = false
    }
    if (this.#store.probesVersion !== probesVersion) {
      for (const listener of this.#probeListeners) await this.#work.guarded(listener)
    }
    this.#logProblems()
  }

  /** An error in one listener does not affect the others. */
  #publish(changes: readonly RecordChange[]): void {
    if (changes.length > 0) {
      for (const listener of this.#listeners) void this.#work.guarded(() => listener(changes))
    }
    void this.#work.guarded(() => this.health.publish())
    if (this.isChanging) this.#lines.noteChanges(changes)
  }

  /**
   * Finds files that changed since they were read, and queues a check of them. Changes no record,
   * because other work reads files meanwhile.
   */
  async #surveyFiles(): Promise<void> {
    const startMs = this.#options.clock.monotonic()
    let listing: Awaited<ReturnType<typeof listManifests>>
    try {
      listing = await this.#list()
    } catch (error) {
      if (!(error instanceof InputError)) throw error
      const { message } = error
      const text = `${message}; all records are kept`
      this.#directoryError = new InputError(undefined, text, error)
      this.#logProblems()
      return
    }
    if (this.#work.isClosed) return
    this.#watch.setDirectories(listing.directories)
    const others = await runInSlices(this.#findOthers(listing.files), this.#options.clock)
    await this.#work.check(() => this.#checkPaths(others))
    this.#surveyedMs = startMs
  }

  /** Returns paths of files that changed since they were read, and of removed files. */
  *#findOthers(files: readonly ManifestStamp[]): Generator<void, string[]> {
    const others: string[] = []
    const present = new Set<string>()
    for (const file of files) {
      const { path } = file
      present.add(path)
      // A file that is being written may be incomplete.
      if (!this.#seen.isKnown(file) && !this.#watch.isWaitingFor(path)) others.push(path)
      yield
    }
    for (const path of this.#store.paths()) {
      if (!present.has(path)) others.push(path)
      yield
    }
    return others
  }

  /** The real path of the directory; undefined if it is missing. */
  #findBase(): string | undefined {
    try {
      return realpathSync.native(this.#options.directory)
    } catch (error) {
      if (!isSystemError(error)) throw error
      return undefined
    }
  }

  async #checkPath(path: string, base: string): Promise<void> {
    this.#watch.willCheck(path)
    const file = stampManifest(path, base, [])
    if (file === undefined) await this.#miss(path)
    else await this.#checkFile(file)
  }

  async #checkFile(file: ManifestStamp): Promise<void> {
    const { path, octets } = file
    const isKnown = this.#seen.isKnown(file)
    const isEmptied = octets === 0 && (this.#store.file(path)?.documents.length ?? 0) > 0
    if (!isKnown && isEmptied && !this.#seen.isEmpty(path)) return
    this.#seen.trust(path)
    if (isKnown) return
    this.#lines.noteFile(path)
    await this.#read(file)
    this.#seen.noteChange()
  }

  /** Removes a file that is missing for longer than its grace period. */
  async #miss(path: string): Promise<void> {
    if (this.#store.file(path) === undefined || !this.#seen.isGone(path)) return
    this.#seen.forget(path)
    this.#lines.noteFile(path)
    await this.#replace(path, undefined)
  }

  async #read(file: ManifestStamp): Promise<void> {
    const { path } = file
    const previous = this.#store.file(path)
    let next: ManifestFile
    try {
      this.filesRead++
      next = await readManifestFile(path, {
        previous,
        findPrevious: (key) => this.#store.findIn(path, key),
        pause: () => this.#pause(),
        onIgnored: (parts) => this.#noteIgnored(parts),
        takesLine: () => this.#lines.takesLine(),
        onOther: (kind) => this.others.add(kind),
        isThorough: this.#options.onIgnored !== undefined,
      })
    } catch (error) {
      const fault = error instanceof InputError ? error : unforeseen(path, error)
      next = { path, documents: previous?.documents ?? [], errors: [fault] }
    }
    this.#seen.noteRead(file)
    await this.#replace(path, next)
  }

  /**
   * Publishes changes in the same event loop turn in which the store applies them, so that all
   * readers see the same state.
   */
  async #replace(path: string, file: ManifestFile | undefined): Promise<void> {
    for (const changes of this.#store.replace(path, file)) {
      this.#publish(changes)
      const paused = this.#pause()
      if (paused !== undefined) await paused
    }
  }

  #noteIgnored(parts: IgnoredParts): void {
    const { onIgnored } = this.#options
    const { problems, locate } = parts
    if (onIgnored === undefined) this.#lines.noteIgnored(parts)
    else for (const problem of problems) onIgnored(locate(problem), problem)
  }

  #pause(): Promise<void> | undefined {
    const nowMs = this.#options.clock.monotonic()
    if (nowMs - this.#sliceStartMs < SLICE_MS) return undefined
    return nextTurn().then(() => {
      this.#sliceStartMs = this.#options.clock.monotonic()
    })
  }

  /** Logs what changed, and what is wrong. */
  #logProblems(): void {
    if (!this.#seen.isSteady) return
    this.#lines.flush(this.#directoryError?.print() ?? '', this.#store.faults)
  }
}

/** Resolves after due timers and I/O have run. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
