import type { Clock } from '../base/clock.ts'
import { StateFile, type StateKind } from '../base/persist/state-file.ts'
import type { Logger } from '../base/telemetry/log.ts'
import type { ProblemGroup } from '../base/telemetry/problems.ts'
import type { Timers } from '../base/timers.ts'
import { SETTLE_MS } from './slow-start-bounds.ts'

export interface SourcesFileOptions {
  /** Absolute path. */
  readonly path: string
  readonly log: Logger
  readonly clock: Clock
  readonly timers: Timers
}

/** How the items of the sources become a file, and the reverse. */
interface SourcesFileForm<Item, Stored> {
  readonly kind: StateKind<Stored>
  readonly print: (items: readonly Item[]) => Iterable<string>
  readonly restore: (found: Stored) => readonly Item[]
}

/** The file as a source of items uses it. */
export type ItemsFile<Item> = Pick<SourcesFile<Item, unknown>, 'known' | 'noteChange' | 'add'>

/** Stores the items of all sources that name the same file, over a restart. */
export class SourcesFile<Item, Stored> {
  readonly #clock: Clock
  readonly #file: StateFile<Stored>
  readonly #users = new Set<() => Iterable<Item>>()
  readonly #openedMs: number
  readonly #known: readonly Item[]

  constructor(options: SourcesFileOptions, form: SourcesFileForm<Item, Stored>) {
    const { path, log, clock, timers } = options
    this.#clock = clock
    const print = (): Iterable<string> => form.print(this.#items())
    this.#file = new StateFile({ path, kind: form.kind, log, clock, timers, print })
    const found = this.#file.open()
    this.#openedMs = clock.monotonic()
    this.#known = found === undefined ? [] : form.restore(found)
  }

  get problems(): readonly ProblemGroup[] {
    return this.#file.problems
  }

  /** Items of an earlier process. Empty after the start, because a reload has those of this process. */
  get known(): readonly Item[] {
    return this.#clock.monotonic() - this.#openedMs < SETTLE_MS ? this.#known : []
  }

  /** Adds a source of items to write to the file; returns the function that removes it. */
  add(items: () => Iterable<Item>): () => void {
    this.#users.add(items)
    return () => this.#users.delete(items)
  }

  noteChange(): void {
    this.#file.noteChange()
  }

  /** Writes the current items and closes the file. */
  close(): void {
    if (this.#items().length > 0) this.#file.noteChange()
    this.#file.close()
  }

  #items(): readonly Item[] {
    return [...this.#users].flatMap((items) => [...items()])
  }
}
