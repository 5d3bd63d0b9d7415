import type { Clock } from '../../../base/clock.ts'
import type { Random } from '../../../base/random.ts'
import { LineBudget } from '../../../base/telemetry/line-budget.ts'
import type { Logger } from '../../../base/telemetry/log.ts'
import type { Timers } from '../../../base/timers.ts'
import { type ApiClient, ApiError, type ApiObject, isObject, textOf } from '../../../kube/api.ts'
import { keyOf, splitKey } from '../../../kube/object-key.ts'
import { isConflict, type ObjectRef, Objects } from '../../../kube/objects.ts'
import { WorkQueue } from '../../../kube/work-queue.ts'
import { Gate, type GateResult, Waiters } from '../../gate.ts'
import { type NameApi, updateWithinBound } from '../../policies/openshift/name-api.ts'
import { PendingLookups } from '../../policies/openshift/pending-lookups.ts'
import type { Lookup, UpdateLimits } from '../../policies/openshift/resolved-names.ts'

/** Parallel writes. */
const WORKERS = 8
/** Writes of one status until another writer is given way for a while. */
const TRIES_MAX = 5
const REQUEST_MS = 10_000
/** Time from a search for expired entries in a full status, without success, to the next one. */
const PRUNE_MS = 1000
/** Longest time until a write that failed is tried again. */
const RETRY_MS_MAX = 15_000
/** Log lines about writes: if the API is away, the writes of all objects fail. */
const LINES_MAX = 10
const LINES_PERIOD_MS = 60_000
/** Replies that wait at the same time: more would take the places of other queries. */
const WAITS_MAX = 256
const FIELD_MANAGER = 'sextant-egressfirewall'
/** Statuses of a request that would be refused again. */
const REFUSED: ReadonlySet<number> = new Set([400, 413, 422])

interface StatusSinkParts<Entry> {
  readonly names: NameApi<Entry>
  readonly limits: UpdateLimits
  /** Longest time that a reply waits; 0 = none waits. */
  readonly gateMs: number
  readonly api: ApiClient
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly log: Logger
}

/** Numbers since the start. */
interface StatusCounts {
  written: number
  /** Writes that another writer was faster than. */
  conflicts: number
  /** Writes that failed for another reason. */
  failed: number
  /** Lookups of names that the definition of the API does not accept. */
  unacceptable: number
  /** Lookups that the status of their object had no room for. */
  full: number
}

/** An object of the API. */
interface Tracked<Entry> {
  readonly ref: ObjectRef
  readonly uid: string
  /** As in the object. */
  readonly specText: string
  /** Lower case. */
  readonly specName: string
  version: string
  /** What the status shows, as far as is known. */
  shown: readonly Entry[]
  /** What it must show: `shown` after the pending lookups. */
  wanted: readonly Entry[]
  readonly pending: PendingLookups
  /** Number of lookups so far, and of those that the status shows, or cannot have. */
  sequence: number
  written: number
  /** The last lookup had no room. */
  isFull: boolean
  /** When expired entries are searched for again, in monotonic milliseconds. */
  pruneMs: number
  readonly waiters: Waiters
}

/**
 * Writes what names resolve to into the status of the objects of one API.
 *
 *     lookup ─▶ wanted (changed?) ─▶ queue ─▶ shown + pending lookups ─▶ write with resourceVersion
 *                                    ▲                                      │
 *                                    └── conflict: read the object again ◀──┘
 *
 * Other servers write the same objects, so a write is a difference from the newest known status, never
 * a set of our own. This is why it is no `Sink` of `gate.ts`: those own what they apply.
 */
export class StatusSink<Entry> {
  readonly counts: StatusCounts = {
    written: 0,
    conflicts: 0,
    failed: 0,
    unacceptable: 0,
    full: 0,
  }
  readonly #parts: StatusSinkParts<Entry>
  readonly #log: Logger
  readonly #objects = new Map<string, Tracked<Entry>>()
  readonly #requests: Objects
  readonly #queue: WorkQueue
  readonly gate: Gate

  constructor(parts: StatusSinkParts<Entry>) {
    const { api, timers, names } = parts
    this.#parts = parts
    this.#log = boundedLogger(parts)
    this.gate = new Gate(parts, parts.gateMs)
    this.#requests = new Objects({
      api,
      timers,
      fieldManager: FIELD_MANAGER,
      timeoutMs: REQUEST_MS,
    })
    this.#queue = new WorkQueue({
      ...parts,
      log: this.#log,
      what: names.resource.plural,
      work: (key) => this.#write(key),
      workers: WORKERS,
      retryMsMax: RETRY_MS_MAX,
    })
    this.#queue.start()
  }

  get plural(): string {
    return this.#parts.names.resource.plural
  }

  /** Objects with lookups that are not written. */
  get pending(): number {
    let count = 0
    for (const { pending } of this.#objects.values()) if (!pending.isEmpty) count++
    return count
  }

  /** Number of objects. */
  get size(): number {
    return this.#objects.size
  }

  /** Keys of all objects, or of those in one namespace. */
  keys(namespace: string): readonly string[] {
    const keys = [...this.#objects.keys()]
    return namespace === '' ? keys : keys.filter((key) => splitKey(key).namespace === namespace)
  }

  /**
   * Adds or changes an object. Returns its `spec.name`. `isListed`: the object counts even if its
   * version is lower than the known one, because the API may have been restored.
   */
  put(object: ApiObject, isListed: boolean): string {
    const key = keyOf(object)
    const uid = textOf(object.metadata, 'uid')
    const specText = textOf(object.spec, 'name')
    const known = this.#objects.get(key)
    if (known !== undefined && known.uid === uid && known.specText === specText) {
      if (isListed || !isOlder(versionOf(object), known.version)) this.#show(known, object)
      return specText
    }
    const { names, limits } = this.#parts
    const isRecreated = known !== undefined && known.specText === specText
    // Answers from after the deletion may be among these, and they explain the new object's too.
    const pending = isRecreated ? known.pending : new PendingLookups(limits)
    known?.waiters.finishAll('')
    const tracked: Tracked<Entry> = {
      ref: { resource: names.resource, ...splitKey(key) },
      uid,
      specText,
      specName: specText.toLowerCase(),
      version: '',
      shown: [],
      wanted: [],
      pending,
      sequence: 0,
      written: -1,
      isFull: false,
      pruneMs: 0,
      waiters: new Waiters(),
    }
    this.#objects.set(key, tracked)
    this.#show(tracked, object)
    if (!pending.isEmpty) this.#queue.add(key)
    return specText
  }

  remove(key: string): void {
    const tracked = this.#objects.get(key)
    if (tracked === undefined) return
    this.#objects.delete(key)
    // No policy has the name any more: nothing is left to wait for.
    tracked.waiters.finishAll('')
  }

  /**
   * Applies a lookup to an object. With a deadline, returns a wait until the status shows all its
   * addresses; undefined = the reply need not wait.
   */
  submit(key: string, lookup: Lookup): Promise<GateResult> | undefined {
    const { names, gateMs } = this.#parts
    const tracked = this.#objects.get(key)
    if (tracked === undefined) return undefined
    if (!names.accepts(lookup.dnsName)) {
      this.counts.unacceptable++
      return undefined
    }
    const next = this.#after(tracked.wanted, tracked, [lookup], () => this.#noteFull(tracked))
    if (next !== tracked.wanted) {
      tracked.isFull = false
      tracked.sequence++
      tracked.pending.add(lookup)
      tracked.wanted = next
      this.#queue.add(key)
    }
    if (gateMs === 0 || tracked.pending.isEmpty) return undefined
    const addresses = lookup.addresses.map(({ ip }) => ip)
    if (this.#areShown(tracked, addresses)) return undefined
    if (this.gate.waiting >= WAITS_MAX) {
      this.gate.results['timed out']++
      return undefined
    }
    const { sequence, waiters } = tracked
    const shown = waiters.wait(() => {
      return tracked.written >= sequence || this.#areShown(tracked, addresses)
    })
    return this.gate.hold([shown], () => waiters.forget(shown))
  }

  /** Tries again what failed, because the API can be reached again. */
  retry(): void {
    this.#queue.retryFailed()
  }

  /** Writes nothing more, and releases all replies. */
  close(): void {
    void this.#queue.close()
    this.#requests.close()
    for (const key of [...this.#objects.keys()]) this.remove(key)
  }

  #after(
    entries: readonly Entry[],
    tracked: Tracked<Entry>,
    lookups: readonly Lookup[],
    onFull: () => void = () => {},
  ): readonly Entry[] {
    const { names, limits, clock } = this.#parts
    const nowMs = clock.monotonic()
    return lookups.reduce((sum, lookup) => {
      // Clients may ask for many names below a wildcard.
      const mayPrune = nowMs >= tracked.pruneMs
      const note = (): void => {
        if (mayPrune) tracked.pruneMs = nowMs + PRUNE_MS
        onFull()
      }
      const bound = { limits, mayPrune, onFull: note }
      return updateWithinBound(names, sum, tracked.specName, lookup, bound)
    }, entries)
  }

  #noteFull(tracked: Tracked<Entry>): void {
    this.counts.full++
    const { namespace, name } = tracked.ref
    const what = `${this.plural} ${namespace}/${name}`
    if (!tracked.isFull) {
      this.#log.warning(`${what}: the status is full: new addresses are not written`, 'status-full')
    }
    tracked.isFull = true
  }

  /** Takes over what the API has. */
  #show(tracked: Tracked<Entry>, object: ApiObject): void {
    const { names, clock } = this.#parts
    const { status } = object
    tracked.version = versionOf(object)
    tracked.shown = names.scan(isObject(status) ? status.resolvedNames : undefined)
    tracked.wanted = this.#after(tracked.shown, tracked, tracked.pending.all(clock.now()))
    tracked.waiters.finish(clock.monotonic())
  }

  /** True if the status has all these addresses, and none of them is expired. */
  #areShown({ shown }: Tracked<Entry>, addresses: readonly string[]): boolean {
    const missing = new Set(addresses)
    const nowMs = this.#parts.clock.now()
    for (const entry of shown) {
      this.#parts.names.forEachAddress(entry, (ip, endMs) => {
        if (endMs > nowMs) missing.delete(ip)
      })
      if (missing.size === 0) break
    }
    return missing.size === 0
  }

  /** Brings one status up to date. Rejects if it must be tried again later. */
  async #write(key: string): Promise<undefined> {
    for (let tries = 1; ; tries++) {
      const tracked = this.#objects.get(key)
      if (tracked === undefined || tracked.pending.isEmpty) return
      const mark = tracked.pending.mark()
      try {
        await this.#writeOnce(key, tracked, mark)
        return
      } catch (error) {
        const isRead = isConflict(error) && tries < TRIES_MAX && (await this.#readAgain(tracked))
        // The object is gone, or this sink is closed.
        if (this.#objects.get(key) !== tracked) return
        if (isRead) continue
        this.#fail(tracked, error, mark)
        if (!tracked.pending.isEmpty) this.#queue.add(key)
        return
      }
    }
  }

  async #writeOnce(key: string, tracked: Tracked<Entry>, mark: ReadonlySet<Lookup>): Promise<void> {
    const { names, clock } = this.#parts
    const { ref, uid, version, pending, sequence, shown } = tracked
    const entries = this.#after(shown, tracked, pending.all(clock.now()))
    if (entries !== shown) {
      const metadata = { uid, resourceVersion: version }
      const status = { resolvedNames: names.print(entries) }
      const written = await this.#requests.patchStatus(ref, { metadata, status })
      this.counts.written++
      // Another object has the name now, and it does not show what was written.
      if (this.#objects.get(key) !== tracked) return
      pending.settle(mark)
      // The watch may have been faster, with the write of another server that followed.
      if (!isOlder(versionOf(written), tracked.version)) this.#show(tracked, written)
    } else pending.settle(mark)
    tracked.written = sequence
    tracked.waiters.finish(clock.monotonic())
  }

  /** Returns false if this very object does not exist any more, or cannot be read. */
  async #readAgain(tracked: Tracked<Entry>): Promise<boolean> {
    this.counts.conflicts++
    const object = await this.#requests.get(tracked.ref).catch(() => undefined)
    if (object === undefined || textOf(object.metadata, 'uid') !== tracked.uid) return false
    this.#show(tracked, object)
    return true
  }

  /** Forgets the lookups of `mark`, which cannot be written. Throws if a later try may succeed. */
  #fail(tracked: Tracked<Entry>, error: unknown, mark: ReadonlySet<Lookup>): void {
    this.counts.failed++
    tracked.waiters.finishAll(String(error))
    if (!(error instanceof ApiError) || !REFUSED.has(error.status)) throw error
    tracked.pending.settle(mark)
    const left = tracked.pending.all(this.#parts.clock.now())
    tracked.wanted = this.#after(tracked.shown, tracked, left)
    const { namespace, name } = tracked.ref
    this.#log.error(
      `${this.plural} ${namespace}/${name}: cannot write the status: ${error.message}`,
      'status-write-failed',
    )
  }
}

/** A logger that omits lines above a number per minute. Metrics count what they report. */
function boundedLogger({ log, clock }: Pick<StatusSinkParts<unknown>, 'log' | 'clock'>): Logger {
  const budget = new LineBudget(LINES_MAX, LINES_PERIOD_MS)
  const bounded =
    (write: Logger['info']): Logger['info'] =>
    (text, event, fields) => {
      if (budget.take(clock.monotonic())) write(text, event, fields)
    }
  return { ...log, warning: bounded(log.warning), error: bounded(log.error) }
}

function versionOf({ metadata }: ApiObject): string {
  return textOf(metadata, 'resourceVersion')
}

/** Compares versions of one kind, which are increasing numbers. */
function isOlder(version: string, known: string): boolean {
  return Number(version) < Number(known)
}
