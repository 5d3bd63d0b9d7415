import { systemClock } from '../base/clock.ts'
import type { InputError } from '../base/errors.ts'
import { runInSlices } from '../base/slices.ts'
import { type Guarded, guarding } from '../base/telemetry/guard.ts'
import type { Logger } from '../base/telemetry/log.ts'
import type { HostShare } from '../records/host-share.ts'
import type { RecordChange, RecordSource, StoredRecord } from '../records/record-source.ts'
import type { OwnedSource } from './owned-source.ts'
import { printRefused, RecordRights, type RefusedNames } from './record-rights.ts'
import type { ZoneOwnership } from './zone-ownership.ts'

interface RightsSourceOptions {
  /** False: the record claims no names, and is always served. */
  readonly isServed: (record: StoredRecord) => boolean
  readonly shares: readonly HostShare[]
  readonly log: Logger
  /** Receives why names of a record are not served; '' = all of them are served again. */
  readonly onRefused: (key: string, text: string) => void
}

/** The records of a source without the names that belong to other namespaces. */
export class RightsSource implements RecordSource {
  readonly #source: RecordSource
  readonly #rights: RecordRights
  readonly #listeners = new Set<(changes: readonly RecordChange[]) => void>()
  readonly #stops: readonly (() => void)[]
  /** Changes of zones that `RecordRights` knows. */
  #zoneChanges: number
  #isClosed = false
  readonly #guarded: Guarded
  /** Ends with the last work that has begun. */
  #work: Promise<void> = Promise.resolve()

  /** `source`: has been read. What is served of it is known once `decided` has resolved. */
  constructor({ source, ownership }: OwnedSource, options: RightsSourceOptions) {
    this.#source = source
    this.#guarded = guarding(options.log, 'Reading which namespaces have hosts')
    this.#rights = new RecordRights({
      ownership,
      records: () => source.records(),
      find: (key) => source.find(key),
      isServed: options.isServed,
      shares: options.shares,
      onRefused: (key, refused) => {
        options.onRefused(key, refused === undefined ? '' : printRefused(refused))
      },
    })
    this.#rights.load()
    this.#stops = [
      source.subscribe((changes) => {
        this.#publish(this.#rights.apply(changes))
        this.#build()
      }),
      ownership.onChange(() => this.#noteZones(ownership)),
    ]
    this.#zoneChanges = ownership.changes
    this.#build()
  }

  /** Resolves once all records are decided for the zones that are claimed now. */
  async decided(): Promise<void> {
    for (let work: Promise<void> | undefined; work !== this.#work; ) {
      work = this.#work
      await work
    }
  }

  get recordCount(): number {
    return this.#source.recordCount
  }

  get isChanging(): boolean {
    return this.#source.isChanging === true
  }

  /** The records with names that are not served. */
  get refused(): readonly RefusedNames[] {
    return this.#rights.refused
  }

  *records(): Generator<StoredRecord> {
    for (const record of this.#source.records()) {
      const served = this.#rights.servedOf(record)
      if (served !== undefined) yield served
    }
  }

  find(key: string): StoredRecord | undefined {
    const record = this.#source.find(key)
    return record && this.#rights.servedOf(record)
  }

  problems(): readonly InputError[] {
    return this.#source.problems()
  }

  unreadyReason(): string {
    return this.#source.unreadyReason()
  }

  subscribe(listener: (changes: readonly RecordChange[]) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  close(): void {
    this.#isClosed = true
    for (const stop of this.#stops) stop()
    this.#listeners.clear()
  }

  /** Decides about all records again. All zones that one Corefile adds count as one change. */
  #noteZones({ changes }: ZoneOwnership): void {
    if (changes === this.#zoneChanges) return
    this.#zoneChanges = changes
    this.#rights.decideAgain()
    this.#build()
  }

  #build(): void {
    const work = this.#rights.build((changes) => this.#publish(changes))
    if (work === undefined) return
    this.#work = runInSlices(this.#untilClosed(work), systemClock)
    void this.#guarded(() => this.#work)
  }

  *#untilClosed(work: Generator<void, void>): Generator<void, void> {
    for (const pause of work) {
      if (this.#isClosed) return
      yield pause
    }
  }

  #publish(changes: readonly RecordChange[]): void {
    if (changes.length === 0) return
    for (const listener of this.#listeners) listener(changes)
  }
}
