import type { Clock } from '../../base/clock.ts'
import type { Timers } from '../../base/timers.ts'
import {
  ALLOW_SETS,
  type AllowedElement,
  type AllowSetName,
  printElement,
  setOf,
} from './allowed-element.ts'

/** Elements stay for so long after their end. `collect` removes them earlier; this is for the case that nobody does. */
const SLACK_MS = 30_000
const RETRY_MS = 1000
const RETRY_MS_MAX = 30_000

export interface AllowSetsParts {
  readonly table: string
  /** Elements of one set. More are refused. */
  readonly elementsMax: number
  /** Statements that create the table and its chains. */
  readonly create: readonly string[]
  /** Runs a transaction. Resolves with '' once it is in force, otherwise with the reason why nothing of it is. */
  readonly commit: (statements: readonly string[]) => Promise<string>
  readonly clock: Clock
  readonly timers: Timers
  /** Called when transactions begin to fail, with the reason, and with '' when they succeed again. */
  readonly onFault: (fault: string) => void
}

/** Numbers since the start. */
export interface AllowSetCounts {
  transactions: number
  failures: number
  /** Elements that were added, refreshed or removed. */
  elements: number
  /** Elements that were refused because their set was full. */
  refused: number
  /** Times that everything was written again. */
  resyncs: number
}

interface Entry {
  readonly set: AllowSetName
  readonly text: string
  /** Monotonic milliseconds. */
  endMs: number
  /** End of the element in the kernel; -Infinity = it is not there. */
  kernelMs: number
}

interface Waiter {
  readonly entries: readonly Entry[]
  readonly finish: (fault: string) => void
}

/**
 * The elements that clients may connect to, and their copy in the kernel. One transaction is in progress
 * at a time; what is wanted meanwhile becomes one next transaction. After a failure the whole sets are
 * written again, until that succeeds.
 */
export class AllowSets {
  readonly #parts: AllowSetsParts
  readonly #entries = new Map<string, Entry>()
  /** Entries whose copy in the kernel differs. An entry that is not in `#entries` is to be removed. */
  #changed = new Set<Entry>()
  readonly #waiters = new Set<Waiter>()
  /** The kernel may have anything: the next transaction creates the table and fills all sets. */
  #isStale = true
  #isCommitting = false
  #isClosed = false
  #failures = 0
  #cancelRetry: (() => void) | undefined
  /** Number of entries of each set. */
  readonly #sizes = new Map<AllowSetName, number>()
  readonly counts: AllowSetCounts = {
    transactions: 0,
    failures: 0,
    elements: 0,
    refused: 0,
    resyncs: 0,
  }

  constructor(parts: AllowSetsParts) {
    this.#parts = parts
  }

  /** Number of elements. */
  get size(): number {
    return this.#entries.size
  }

  /**
   * Allows elements up to a time, in monotonic milliseconds; a later end that is known already stays.
   * Returns a wait for the kernel: '' = they are in force, otherwise the reason why they are
   * not. Undefined = they are in force already.
   */
  allow(elements: readonly AllowedElement[], endMs: number): Promise<string> | undefined {
    const missing: Entry[] = []
    let fault = ''
    for (const element of elements) {
      const entry = this.#entryOf(element)
      if (entry === undefined) {
        this.counts.refused++
        fault = `set ${setOf(element)} is full`
        continue
      }
      entry.endMs = Math.max(entry.endMs, endMs)
      if (entry.endMs > entry.kernelMs) this.#changed.add(entry)
      if (entry.kernelMs < this.#parts.clock.monotonic()) missing.push(entry)
    }
    this.#commit()
    if (fault !== '') return Promise.resolve(fault)
    if (missing.length === 0) return undefined
    return new Promise((resolve) => {
      const waiter = {
        entries: missing,
        finish: (fault: string) => {
          this.#waiters.delete(waiter)
          resolve(fault)
        },
      }
      this.#waiters.add(waiter)
    })
  }

  /** Removes elements before their end. */
  withdraw(elements: readonly AllowedElement[]): void {
    for (const element of elements) {
      const entry = this.#entries.get(keyOf(setOf(element), printElement(element)))
      if (entry !== undefined) this.#drop(entry)
    }
    this.#commit()
  }

  /** Removes what has ended. */
  collect(): void {
    const nowMs = this.#parts.clock.monotonic()
    for (const entry of [...this.#entries.values()]) if (entry.endMs < nowMs) this.#drop(entry)
    this.#commit()
  }

  /** Writes everything again, because the kernel may have lost it. */
  resync(): void {
    this.#isStale = true
    for (const entry of this.#entries.values()) entry.kernelMs = Number.NEGATIVE_INFINITY
    this.#commit()
  }

  /** Starts no more transactions. The kernel keeps what it has. */
  close(): void {
    this.#isClosed = true
    this.#cancelRetry?.()
    for (const waiter of [...this.#waiters]) waiter.finish('closed')
  }

  /** Returns undefined if the set is full. */
  #entryOf(element: AllowedElement): Entry | undefined {
    const set = setOf(element)
    const text = printElement(element)
    const key = keyOf(set, text)
    const known = this.#entries.get(key)
    if (known !== undefined) return known
    const size = this.#sizes.get(set) ?? 0
    if (size >= this.#parts.elementsMax) return undefined
    this.#sizes.set(set, size + 1)
    const none = Number.NEGATIVE_INFINITY
    const entry: Entry = { set, text, endMs: none, kernelMs: none }
    this.#entries.set(key, entry)
    return entry
  }

  #drop(entry: Entry): void {
    this.#entries.delete(keyOf(entry.set, entry.text))
    this.#sizes.set(entry.set, this.#sizes.get(entry.set)! - 1)
    this.#changed.add(entry)
  }

  #isWanted(entry: Entry): boolean {
    return this.#entries.get(keyOf(entry.set, entry.text)) === entry
  }

  #commit(): void {
    if (this.#isCommitting || this.#isClosed || this.#cancelRetry !== undefined) return
    if (this.#isStale || this.#changed.size > 0) void this.#run()
  }

  async #run(): Promise<void> {
    const { commit, clock, onFault } = this.#parts
    const isWhole = this.#isStale
    const nowMs = clock.monotonic()
    const entries = isWhole ? new Set(this.#entries.values()) : this.#changed
    const ends = new Map<Entry, number>()
    for (const entry of entries) if (this.#isWanted(entry)) ends.set(entry, entry.endMs + SLACK_MS)
    const statements = this.#statementsOf(entries, isWhole, nowMs)
    this.#isStale = false
    this.#changed = new Set()
    this.#isCommitting = true
    const fault = await commit(statements)
    this.#isCommitting = false
    this.counts.transactions++
    if (fault === '') {
      if (isWhole) this.counts.resyncs++
      this.counts.elements += entries.size
      if (this.#failures > 0) onFault('')
      this.#failures = 0
      for (const [entry, kernelMs] of ends) if (!this.#isStale) entry.kernelMs = kernelMs
    } else this.#fail(fault)
    for (const waiter of [...this.#waiters]) {
      if (fault !== '') waiter.finish(fault)
      else if (waiter.entries.every(({ kernelMs }) => kernelMs >= nowMs)) waiter.finish('')
    }
    this.#commit()
  }

  #fail(fault: string): void {
    const { timers, onFault } = this.#parts
    this.counts.failures++
    this.#isStale = true
    for (const entry of this.#entries.values()) entry.kernelMs = Number.NEGATIVE_INFINITY
    if (this.#failures === 0) onFault(fault)
    const waitMs = Math.min(RETRY_MS * 2 ** this.#failures, RETRY_MS_MAX)
    this.#failures++
    if (this.#isClosed) return
    this.#cancelRetry = timers.after(waitMs, () => {
      this.#cancelRetry = undefined
      this.#commit()
    })
  }

  #statementsOf(entries: ReadonlySet<Entry>, isWhole: boolean, nowMs: number): readonly string[] {
    const { table, create } = this.#parts
    const statements: string[] = []
    if (isWhole) {
      statements.push(...create)
      for (const set of ALLOW_SETS) statements.push(`flush set inet ${table} ${set}`)
    }
    for (const set of ALLOW_SETS) {
      const added: string[] = []
      const removed: string[] = []
      for (const entry of entries) {
        if (entry.set !== set) continue
        removed.push(entry.text)
        if (!this.#isWanted(entry)) continue
        const seconds = Math.ceil((entry.endMs + SLACK_MS - nowMs) / 1000)
        added.push(`${entry.text} timeout ${Math.max(1, seconds)}s`)
      }
      const text = (verb: string, list: readonly string[]): string =>
        `${verb} element inet ${table} ${set} { ${list.join(', ')} }`
      if (!isWhole && removed.length > 0) {
        // Removing an element that is not there would be an error, and the kernel before 6.12 does not
        // change the timeout of one that is.
        statements.push(text('add', removed), text('delete', removed))
      }
      if (added.length > 0) statements.push(text('add', added))
    }
    return statements
  }
}

function keyOf(set: AllowSetName, text: string): string {
  return `${set} ${text}`
}
