import type { Clock } from '../../base/clock.ts'
import type { SteeringTable } from '../../steering/table.ts'
import type { ZoneImage } from '../../zone/image/writer.ts'
import type { AnswerEvents } from '../build/answer-events.ts'
import type { EndpointCounters } from './endpoint-counters.ts'
import type { OfferedVersions } from './offered-versions.ts'
import type { PublishedZone } from './published-zone.ts'
import type { SerialFile } from './serials/serial-file.ts'

/** What a publisher commits to. */
export interface CommitParts {
  readonly image: ZoneImage
  readonly table: SteeringTable
  readonly versions: OfferedVersions
  /** Keeps the serials over a restart; undefined = they are not kept. */
  readonly serialFile: SerialFile | undefined
  readonly events: AnswerEvents
  readonly counters?: EndpointCounters | undefined
  readonly clock: Clock
  /** Receives the duration of each commit that changed something. */
  readonly onCommit: (seconds: number) => void
}

/** Publishes the applied changes of all zones of a publisher at once. */
export class Commits {
  readonly #zones: readonly PublishedZone[]
  readonly #parts: CommitParts

  constructor(zones: readonly PublishedZone[], parts: CommitParts) {
    this.#zones = zones
    this.#parts = parts
  }

  /**
   * Sets new serials where content changed, then publishes once for all zones. It publishes at
   * once and returns undefined, unless the content has geo codes that the GEO classes do not know
   * yet. No change may be applied until it has published.
   */
  commit(startMs: number): Promise<void> | undefined {
    const isChanged = this.#raiseSerials()
    // Changes that cancel each other out leave the content unchanged, but the image unpublished.
    this.#parts.events.flushStates()
    if (!isChanged && this.#parts.image.isPublished) return undefined
    const built = this.#parts.table.built()
    if (built === undefined) this.#publish(startMs)
    return built && this.#publishOnce(built, startMs)
  }

  /** As `commit`, for content that is complete for the first time. `beforePublish` runs when serials are known. */
  async commitFirst(startMs: number, beforePublish: () => void): Promise<void> {
    this.#raiseSerials()
    await this.#parts.table.built()
    beforePublish()
    this.#publish(startMs)
  }

  async #publishOnce(built: Promise<void>, startMs: number): Promise<void> {
    // The error was logged. Clients get the answers that do not depend on the location.
    await built.catch(() => {})
    this.#publish(startMs)
  }

  #publish(startMs: number): void {
    const { image, clock, onCommit, versions, events, counters } = this.#parts
    image.publish()
    counters?.published()
    events.flush((zone) => this.#zones.find(({ text }) => text === zone)?.serial ?? 0)
    versions.offer(this.#zones)
    onCommit((clock.monotonic() - startMs) / 1000)
  }

  /** Returns false if nothing changed. */
  #raiseSerials(): boolean {
    const { serialFile } = this.#parts
    const changed = this.#zones.filter(({ isChanged }) => isChanged)
    if (changed.length === 0) return false
    serialFile?.catchUp()
    for (const zone of changed) zone.raiseSerial()
    serialFile?.save(changed.map(({ text }) => text))
    return true
  }
}
