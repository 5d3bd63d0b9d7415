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
  /** Zones that could not be signed and have unpublished content in the image. */
  readonly #failed = new Set<PublishedZone>()

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
   * returns undefined, unless many signatures are made, changes were held back, or the content has geo codes that the
   * GEO classes do not know yet. No change may be applied until the promise resolves. The content of a zone that could
   * not be signed is taken back: its published version stays in force.
   */
  commit(startMs: number): Promise<void> | undefined {
    const released = this.#release()
    return released === undefined
      ? this.#commitReleased(startMs)
      : released.then(() => this.#commitReleased(startMs))
  }

  /** As `commit`, for content that is complete for the first time. `beforePublish` runs when serials are known. */
  async commitFirst(startMs: number, beforePublish: () => void): Promise<void> {
    await this.#release()
    this.#raiseSerials()
    await this.#sign()
    await this.#parts.table.built()
    const isReady = await this.#takeBack()
    beforePublish()
    if (isReady) this.#publish(startMs)
  }

  /** Never rejects. */
  #release(): Promise<void> | undefined {
    const zones = this.#zones.filter(({ isReleasable }) => isReleasable)
    if (zones.length === 0) return undefined
    const released = zones.map((zone) => {
      return zone.release().catch((error: unknown) => this.#noteFailure(zone, error))
    })
    return Promise.all(released).then(() => {})
  }

  #noteFailure(zone: PublishedZone, error: unknown): void {
    this.#failed.add(zone)
    zone.signatures?.noteFault(error)
  }

  #commitReleased(startMs: number): Promise<void> | undefined {
    const { image, table, events } = this.#parts
    const isChanged = this.#raiseSerials()
    const signed = this.#sign()
    // Changes that cancel each other out leave the content unchanged, but the image unpublished.
    events.flushStates()
    const isSigned = signed === undefined && this.#failed.size === 0
    if (isSigned && !isChanged && image.isPublished) {
      for (const zone of this.#zones) zone.published()
      return undefined
    }
    const built = table.built()
    if (!isSigned || built !== undefined) return this.#publishAfter(signed, built, startMs)
    this.#publish(startMs)
    return undefined
  }

  async #publishAfter(
    signed: Promise<void> | undefined,
    built: Promise<void> | undefined,
    startMs: number,
  ): Promise<void> {
    // The error was logged. Clients get the answers that do not depend on the location.
    await Promise.all([signed, built?.catch(() => {})])
    if (await this.#takeBack()) this.#publish(startMs)
  }

  /** Resolves to false if content of a zone that could not be signed is still in the image. Never rejects. */
  async #takeBack(): Promise<boolean> {
    for (const zone of this.#failed) {
      try {
        await zone.takeBack()
      } catch (error) {
        zone.signatures?.noteFault(error)
        return false
      }
      this.#failed.delete(zone)
    }
    return true
  }

  #publish(startMs: number): void {
    const { image, clock, onCommit, versions, events, counters } = this.#parts
    image.publish()
    // The last signed version of a zone uses counters that its records no longer have.
    if (!this.#zones.some(({ isHeld }) => isHeld)) counters?.published()
    for (const zone of this.#zones) zone.published()
    events.flush((zone) => this.#zones.find(({ text }) => text === zone)?.serial ?? 0)
    versions.offer(this.#zones)
    onCommit((clock.monotonic() - startMs) / 1000)
  }

  /** Returns false if nothing changed. */
  #raiseSerials(): boolean {
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
    const pending = this.#zones.flatMap((zone) => this.#signZone(zone) ?? [])
    return pending.length === 0 ? undefined : Promise.all(pending).then(() => {})
  }

  /** Signs a zone. Signatures that differ although the content is the same are a new version of the zone. */
  #signZone(zone: PublishedZone): Promise<void> | undefined {
    if (zone.signatures === undefined || zone.isHeld) return undefined
    this.#failed.delete(zone)
    const signed = this.#signOnce(zone)
    if (signed !== undefined) return signed.then(() => this.#signRaised(zone))
    return this.#signRaised(zone)
  }

  #signRaised(zone: PublishedZone): Promise<void> | undefined {
    if (this.#failed.has(zone) || !zone.needsSerial) return undefined
    zone.signatures?.renew()
    this.#raise([zone])
    return this.#signOnce(zone)
  }

  /** Never rejects. */
  #signOnce(zone: PublishedZone): Promise<void> | undefined {
    try {
      return zone.signatures?.sign()?.catch((error: unknown) => this.#noteFailure(zone, error))
    } catch (error) {
      this.#noteFailure(zone, error)
      return undefined
    }
  }
}
