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
  #isRefused = false

  constructor(zones: readonly PublishedZone[], parts: CommitParts) {
    this.#zones = zones
    this.#parts = parts
  }

  /** True if another commit may publish what the last one could not, because a zone was not signed. */
  get isDue(): boolean {
    return this.#zones.some(({ isReleasable, signatures }) => {
      return isReleasable || signatures?.isRetryDue === true
    })
  }

  /** Continues a compaction of the image. Call it now and then while no change is applied and no commit waits. */
  compactIdle(): void {
    const { image, versions } = this.#parts
    if (image.compactIdle()) versions.offer(this.#zones)
  }

  /**
   * Sets new serials where content changed and signs it, then publishes once for all zones. It publishes at once and
   * returns undefined, unless many signatures are made, or the content has geo codes that the GEO classes do not know
   * yet. No change may be applied until the promise resolves. Publishes nothing if a zone could not be signed.
   */
  commit(startMs: number): Promise<void> | undefined {
    const { image, table, events } = this.#parts
    const isChanged = this.#raiseSerials()
    const signed = this.#sign()
    // Changes that cancel each other out leave the content unchanged, but the image unpublished.
    events.flushStates()
    if (this.#isRefused) return signed
    if (!isChanged && signed === undefined && image.isPublished) {
      for (const zone of this.#zones) zone.published()
      return undefined
    }
    const built = table.built()
    if (signed !== undefined || built !== undefined)
      return this.#publishAfter(signed, built, startMs)
    this.#publish(startMs)
    return undefined
  }

  /** As `commit`, for content that is complete for the first time. `beforePublish` runs when serials are known. */
  async commitFirst(startMs: number, beforePublish: () => void): Promise<void> {
    this.#raiseSerials()
    await this.#sign()
    await this.#parts.table.built()
    beforePublish()
    if (!this.#isRefused) this.#publish(startMs)
  }

  async #publishAfter(
    signed: Promise<void> | undefined,
    built: Promise<void> | undefined,
    startMs: number,
  ): Promise<void> {
    // The error was logged. Clients get the answers that do not depend on the location.
    await Promise.all([signed, built?.catch(() => {})])
    if (!this.#isRefused) this.#publish(startMs)
  }

  #publish(startMs: number): void {
    const { image, clock, onCommit, versions, events, counters } = this.#parts
    image.publish()
    counters?.published()
    for (const zone of this.#zones) zone.published()
    events.flush((zone) => this.#zones.find(({ text }) => text === zone)?.serial ?? 0)
    versions.offer(this.#zones)
    onCommit((clock.monotonic() - startMs) / 1000)
  }

  /** Returns false if nothing changed. */
  #raiseSerials(): boolean {
    for (const zone of this.#zones) zone.release()
    const changed = this.#zones.filter(({ isChanged, isHeld }) => isChanged && !isHeld)
    if (changed.length > 0) this.#raise(changed)
    return changed.length > 0
  }

  #raise(zones: readonly PublishedZone[]): void {
    const { serialFile } = this.#parts
    serialFile?.catchUp()
    for (const zone of zones) zone.raiseSerial()
    serialFile?.save(zones.map(({ text }) => text))
  }

  #sign(): Promise<void> | undefined {
    this.#isRefused = false
    const pending = this.#zones.flatMap((zone) => this.#signZone(zone) ?? [])
    return pending.length === 0 ? undefined : Promise.all(pending).then(() => {})
  }

  /** Signs a zone. Signatures that differ although the content is the same are a new version of the zone. */
  #signZone(zone: PublishedZone): Promise<void> | undefined {
    if (zone.signatures === undefined || zone.isHeld) return undefined
    const signed = this.#signOnce(zone)
    if (signed !== undefined) return signed.then(() => this.#signRaised(zone))
    return this.#signRaised(zone)
  }

  #signRaised(zone: PublishedZone): Promise<void> | undefined {
    if (this.#isRefused || !zone.needsSerial) return undefined
    zone.signatures?.renew()
    this.#raise([zone])
    return this.#signOnce(zone)
  }

  /** Never rejects. */
  #signOnce({ signatures }: PublishedZone): Promise<void> | undefined {
    const refuse = (error: unknown): void => {
      this.#isRefused = true
      signatures?.noteFault(error)
    }
    try {
      return signatures?.sign()?.catch(refuse)
    } catch (error) {
      refuse(error)
      return undefined
    }
  }
}
