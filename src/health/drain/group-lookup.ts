import { type Guarded, guarding } from '../../base/telemetry/guard.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import { RRType } from '../../dns/iana/index.ts'
import { lowerName, nameKey, printName } from '../../dns/name/name.ts'
import { unpackRecord } from '../../records/pack.ts'
import type { RecordChange, RecordSource, StoredRecord } from '../../records/record-source.ts'
import { ACTIVE_GROUPS_LABEL } from './active-groups.ts'
import { askGroups, type FoundGroups, type GroupServer, readGroups } from './ask-groups.ts'

/** Bounds on the interval between two queries, which is the TTL otherwise. */
const POLL_MS_MIN = 5000
const POLL_MS_MAX = 60_000
/** Wait after a failed query. */
const RETRY_MS = 15_000
/** A start waits so long for the active groups. */
const START_MS_MAX = 3000

export interface GroupLookupOptions {
  /** Wire name. */
  readonly zone: Uint8Array
  /** Returns the servers to ask, before each query. */
  readonly servers: () => readonly GroupServer[] | Promise<readonly GroupServer[]>
  readonly timers: Timers
  readonly log: Logger
}

/**
 * Follows the active groups of one zone, which the TXT record `kuadrant-active-groups.ZONE` names.
 * The record comes from followed sources of records, or else from DNS. Without a valid TXT record, the last
 * known groups are kept.
 */
export class GroupLookup {
  /** As text, with the final dot. */
  readonly zone: string
  readonly #options: GroupLookupOptions
  /** Name of the TXT record. */
  readonly #name: Uint8Array
  readonly #sources = new Set<RecordSource>()
  readonly #listeners = new Set<() => void>()
  readonly #guarded: Guarded
  readonly #abort = new AbortController()
  #groups: readonly string[] | undefined
  #fault = ''
  #cancel = (): void => {}
  /** Number of the last lookup: the result of an earlier one does not count. */
  #lookup = 0
  #hasFound = false
  #isSettled = false
  #firstAttempt: Promise<void> | undefined

  constructor(options: GroupLookupOptions) {
    const { zone, log } = options
    const label = Buffer.from(ACTIVE_GROUPS_LABEL)
    this.#options = options
    this.#name = Buffer.concat([Buffer.from([label.length]), label, zone])
    this.zone = printName(zone)
    this.#guarded = guarding(log, `Following the active groups of ${this.zone}`)
  }

  /** Undefined = not known yet. */
  get groups(): readonly string[] | undefined {
    return this.#groups
  }

  /** Why the last query failed; '' = it did not. */
  get fault(): string {
    return this.#fault
  }

  /** True once the first attempt has ended, or takes too long. */
  get isSettled(): boolean {
    return this.#isSettled
  }

  /** Sets the groups that were known before this process, unless newer ones are known. */
  recall(groups: readonly string[]): void {
    if (this.#groups !== undefined) return
    this.#groups = groups
    this.#notify()
  }

  /** The TXT record may be one of these records. The returned function ends this. */
  follow(source: RecordSource): () => void {
    this.#sources.add(source)
    const unsubscribe = source.subscribe((changes) => this.#read(changes))
    if (this.#firstAttempt !== undefined && this.#findOwn() !== undefined) this.#pollSoon()
    return () => {
      unsubscribe()
      this.#sources.delete(source)
      if (!this.#abort.signal.aborted) this.#pollSoon()
    }
  }

  /** Starts the lookups. Resolves once the first attempt has ended, or takes too long. */
  start(): Promise<void> {
    this.#firstAttempt ??= new Promise((resolve) => {
      const settle = (): void => {
        cancel()
        if (this.#isSettled) return
        this.#isSettled = true
        resolve()
        this.#notify()
      }
      const cancel = this.#options.timers.after(START_MS_MAX, settle)
      void this.#guarded(() => this.#poll()).then(settle)
    })
    return this.#firstAttempt
  }

  /** Calls `listener` after each lookup that may have changed something; returns the function that unsubscribes it. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  close(): void {
    this.#abort.abort()
    this.#cancel()
    this.#listeners.clear()
  }

  #read(changes: readonly RecordChange[]): void {
    const concerns = (record: StoredRecord | undefined): boolean => {
      return record?.packed.includes(ACTIVE_GROUPS_LABEL) === true
    }
    if (changes.some(({ before, after }) => concerns(before) || concerns(after))) this.#pollSoon()
  }

  /** Applies the TXT record of a source at once; only DNS takes time. */
  #pollSoon(): void {
    void this.#guarded(() => this.#poll())
  }

  async #poll(): Promise<void> {
    this.#cancel()
    const lookup = ++this.#lookup
    const own = this.#findOwn()
    const found = own ?? (await this.#query())
    if (this.#abort.signal.aborted || lookup !== this.#lookup) return
    this.#apply(found)
    // The changes of a followed record are reported.
    if (own !== undefined) return
    const ttlMs = 'fault' in found ? RETRY_MS : found.ttlSeconds * 1000
    const waitMs = Math.min(POLL_MS_MAX, Math.max(POLL_MS_MIN, ttlMs))
    this.#cancel = this.#options.timers.after(waitMs, () => this.#pollSoon())
  }

  async #query(): Promise<FoundGroups> {
    return askGroups(this.#name, await this.#options.servers(), this.#abort.signal)
  }

  #apply(found: FoundGroups): void {
    const { log } = this.#options
    if ('fault' in found) {
      const kept =
        this.#groups === undefined ? 'the group counts as active' : 'the last known groups count'
      const fault = `${found.fault}; ${kept}`
      if (fault === this.#fault) return
      log.warning(`active groups of ${this.zone}: ${fault}`, 'active-groups')
      this.#fault = fault
    } else {
      const text = found.groups.join(', ')
      const isSame = this.#hasFound && this.#fault === '' && text === this.#groups?.join(', ')
      if (isSame) return
      this.#hasFound = true
      this.#fault = ''
      this.#groups = found.groups
      log.info(`active groups of ${this.zone}: ${text === '' ? 'none' : text}`, 'active-groups')
    }
    this.#notify()
  }

  /** Undefined = no followed source has the TXT record. */
  #findOwn(): FoundGroups | undefined {
    const key = nameKey(this.#name)
    for (const source of this.#sources) {
      for (const { packed } of source.records()) {
        if (!packed.includes(ACTIVE_GROUPS_LABEL)) continue
        for (const { owner, type, rdata, ttlSeconds } of unpackRecord(packed).endpoints) {
          if (type !== RRType.TXT || nameKey(lowerName(owner)) !== key) continue
          return readGroups(rdata, ttlSeconds, 'the record')
        }
      }
    }
    return undefined
  }

  #notify(): void {
    for (const listener of this.#listeners) listener()
  }
}
