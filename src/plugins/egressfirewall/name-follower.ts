import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'
import { FaultLog } from '../../base/telemetry/fault-log.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { MetricsRegistry } from '../../base/telemetry/metrics.ts'
import type { Timers } from '../../base/timers.ts'
import type { HashedName } from '../../dns/name/hashed-name.ts'
import { type GateResult, waitForAll } from '../../egress/gate.ts'
import { DNS_NAME_RESOLVER } from '../../egress/policies/openshift/dns-name-resolver.ts'
import { EGRESS_FIREWALL_DNS_NAME } from '../../egress/policies/openshift/egress-firewall-dns-name.ts'
import type { NameApi } from '../../egress/policies/openshift/name-api.ts'
import type { Lookup, UpdateLimits } from '../../egress/policies/openshift/resolved-names.ts'
import { scanSelector } from '../../egress/selectors/scan-selector.ts'
import { type IndexedSelector, SelectorIndex } from '../../egress/selectors/selector-index.ts'
import { StatusSink } from '../../egress/sinks/status/status-sink.ts'
import type { ApiClient, ApiObject } from '../../kube/api.ts'
import { ListWatch } from '../../kube/list-watch.ts'
import { keyOf, splitKey } from '../../kube/object-key.ts'
import { ObjectSink } from '../../kube/object-sink.ts'
import { exportSinks } from './metrics.ts'

/** Time between two checks whether everything is written. */
const FLUSH_CHECK_MS = 10

interface NameFollowerParts {
  readonly api: ApiClient
  /** Empty = all. */
  readonly namespaces: readonly string[]
  readonly limits: UpdateLimits
  /** Longest time that a reply waits for a status; 0 = none waits. */
  readonly gateMs: number
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly log: Logger
  readonly metrics: MetricsRegistry
}

/** A sink for entries of any form. */
type AnySink = Pick<
  StatusSink<unknown>,
  'plural' | 'counts' | 'gate' | 'pending' | 'size' | 'submit' | 'retry' | 'close'
>

/**
 * The DNS names of the objects of a cluster, and the way back: what a name resolves to, into the
 * status of its objects.
 *
 *     watch of each API ─▶ selectors ─▶ listeners (data threads)
 *     lookup ─▶ selectors of the name ─▶ objects ─▶ StatusSink of their API
 *
 * Blocks with the same options share one, and so do both instances of a reload.
 */
export class NameFollower {
  /** The selectors of all objects. */
  readonly selectors = new SelectorIndex()
  readonly #parts: NameFollowerParts
  /** Of objects with invalid names, by API and key: there may be any number. */
  readonly #faults: FaultLog
  readonly #sinks: readonly AnySink[]
  readonly #watches: readonly ListWatch[]
  readonly #stopMetrics: () => void
  readonly #listeners = new Set<() => void>()
  readonly #found: IndexedSelector[] = []
  #markSettled: () => void = () => {}
  readonly #settled = new Promise<void>((resolve) => {
    this.#markSettled = resolve
  })
  #isStarted = false
  #isClosed = false
  #isPublishing = false

  constructor(parts: NameFollowerParts) {
    this.#parts = parts
    this.#faults = new FaultLog(parts.log, parts.clock)
    const followed = [this.#follow(DNS_NAME_RESOLVER), this.#follow(EGRESS_FIREWALL_DNS_NAME)]
    this.#sinks = followed.map(({ sink }) => sink)
    this.#watches = followed.flatMap(({ watches }) => watches)
    this.#stopMetrics = exportSinks(parts.metrics, this.#sinks)
  }

  /** Starts the watches, at the first call. */
  start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    for (const watch of this.#watches) void watch.run()
  }

  /** True once each API was listed, or is not there. */
  get isSettled(): boolean {
    return this.#watches.every(({ isSynced, failureStatus }) => {
      return isSynced || failureStatus === 403 || failureStatus === 404
    })
  }

  /** Resolves when `isSettled` becomes true. Never rejects. */
  settled(): Promise<void> {
    return this.#settled
  }

  /** Why names may be missing or out of date; '' = they are not. */
  get reason(): string {
    const reasons = this.#watches.map(({ reason }) => reason).filter((reason) => reason !== '')
    return [...new Set(reasons)].slice(0, 3).join('; ')
  }

  /** The texts of all selectors. */
  texts(): readonly string[] {
    return [...this.selectors.all()].map(({ selector }) => selector.text)
  }

  /** Calls `listener` after changes of the selectors, until the returned function is called. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /**
   * Writes a lookup of `name` to the objects that select it. Returns a wait for the sinks; undefined =
   * the reply need not wait.
   */
  submit(name: HashedName, lookup: Lookup): Promise<GateResult> | undefined {
    const found = this.#found
    found.length = 0
    this.selectors.find(name, found)
    const waits: (Promise<GateResult> | undefined)[] = []
    for (const { owners } of found) {
      for (const { consumer, namespace, object } of owners) {
        const sink = this.#sinks.find(({ plural }) => plural === consumer)
        waits.push(sink?.submit(`${namespace}/${object}`, lookup))
      }
    }
    return waitForAll(waits)
  }

  /** Resolves when everything is written, at the latest after `timeoutMs`. Keeps the process alive. */
  async flush(timeoutMs: number): Promise<void> {
    const isPending = (): boolean => this.#sinks.some(({ pending }) => pending > 0)
    for (let leftMs = timeoutMs; leftMs > 0 && isPending(); leftMs -= FLUSH_CHECK_MS) {
      await delay(FLUSH_CHECK_MS)
    }
  }

  close(): void {
    this.#isClosed = true
    for (const watch of this.#watches) watch.close()
    for (const sink of this.#sinks) sink.close()
    this.#stopMetrics()
    this.#listeners.clear()
  }

  #follow<Entry>(names: NameApi<Entry>): { sink: AnySink; watches: readonly ListWatch[] } {
    const parts = this.#parts
    const sink = new StatusSink({ ...parts, names })
    const scopes = parts.namespaces.length === 0 ? [''] : parts.namespaces
    const watches = scopes.map((namespace) => {
      return new ListWatch({
        ...parts,
        resource: names.resource,
        namespace,
        labelSelector: '',
        sink: new ObjectSink({
          put: (object, isListed) => this.#put(sink, object, isListed),
          remove: (key) => this.#remove(sink, key),
          keys: () => sink.keys(namespace),
        }),
        onProgress: () => {
          if (this.isSettled) this.#markSettled()
        },
        onReturn: () => sink.retry(),
      })
    })
    return { sink, watches }
  }

  #put<Entry>(sink: StatusSink<Entry>, object: ApiObject, isListed: boolean): void {
    const key = keyOf(object)
    const text = sink.put(object, isListed)
    const selector = scanSelector(text, 'openshift')
    const thing = `${sink.plural} ${key}`
    if (typeof selector === 'string') this.#faults.report(thing, `${thing}: ignored: ${selector}`)
    else this.#faults.clear(thing)
    this.#select(sink, key, typeof selector === 'string' ? [] : [selector])
  }

  #remove<Entry>(sink: StatusSink<Entry>, key: string): void {
    sink.remove(key)
    this.#faults.clear(`${sink.plural} ${key}`)
    this.#select(sink, key, [])
  }

  #select<Entry>(
    sink: StatusSink<Entry>,
    key: string,
    selectors: Parameters<SelectorIndex['set']>[1],
  ): void {
    const { namespace, name } = splitKey(key)
    const owner = { consumer: sink.plural, namespace, object: name }
    const { added, removed } = this.selectors.set(owner, selectors)
    if (added.length + removed.length > 0) this.#publish()
  }

  /** Reports the changes of one turn together. */
  #publish(): void {
    if (this.#isPublishing) return
    this.#isPublishing = true
    setImmediate(() => {
      this.#isPublishing = false
      if (this.#isClosed) return
      for (const listener of this.#listeners) listener()
    })
  }
}
