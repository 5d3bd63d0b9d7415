import type { ResourceLease, ResourceRegistry } from '../base/resource-registry.ts'
import { equalNames } from '../dns/name/name.ts'
import { nameOf, type SourcePlace } from '../sources/source-place.ts'
import type { PublishOptions } from './options.ts'

/** A publisher as the others of its group see it. */
interface GroupMember {
  readonly options: PublishOptions
  /** Distinguishes it from others with the same zone; complete once all setups ran. */
  readonly place: () => string
  /** Opens the source and claims the zones, unless that was done before. */
  readonly claim: () => Promise<void>
  /** Stops applying changes of records to the zones. */
  readonly stopFollowing: () => void
  /** True if queries are answered from records or from a snapshot. */
  readonly serves: () => boolean
  /** Handles a NOTIFY for the zone kdrnt from that address. */
  readonly notify: (host: string) => void
}

/** A start waits this long for clusters. After that, queries get SERVFAIL until the records are loaded. */
const PATIENCE_MS = 5000

/** The groups in service: during a reload, that of the old Corefile and that of the new one. */
class RunningGroups {
  readonly groups = new Set<PublisherGroup>()
}

/**
 * The publishers of one Corefile. All of them claim their zones before the first zone is filled.
 * Otherwise a record could be in a shorter zone for a moment, until a longer zone is claimed, and
 * count as a change there. For the same reason, all of them stop before the first one releases its
 * zones.
 */
export class PublisherGroup {
  readonly #members: GroupMember[] = []
  #assigned: Promise<void> | undefined
  #readBefore: Set<string> | undefined
  #patientUntilMs: number | undefined
  #running: ResourceLease<RunningGroups> | undefined

  add(member: GroupMember): void {
    this.#members.push(member)
  }

  get options(): readonly PublishOptions[] {
    return this.#members.map((member) => member.options)
  }

  /** Places of the publishers that have the zone. */
  placesOf(zone: Uint8Array): Set<string> {
    const having = this.#members.filter(({ options }) => {
      return options.zones.some((other) => equalNames(other, zone))
    })
    return new Set(having.map((member) => member.place()))
  }

  /**
   * Resolves once all publishers have claimed their zones. Rejects with the first error; it can be
   * called again after that.
   */
  assignZones(): Promise<void> {
    this.#assigned ??= this.#assignInTurn().catch((error) => {
      this.#assigned = undefined
      throw error
    })
    return this.#assigned
  }

  /**
   * True if an earlier group of this process had read the source when the first publisher of this
   * one started. `isRead`: whether the source at a place has been read by now.
   */
  hadSource(source: SourcePlace, isRead: (place: SourcePlace) => boolean): boolean {
    this.#readBefore ??= new Set(
      this.options.filter((options) => isRead(options.source)).map(({ source }) => nameOf(source)),
    )
    return this.#readBefore.has(nameOf(source))
  }

  /**
   * Milliseconds to wait for a cluster. All publishers share one deadline, so that many of one
   * unreachable API wait no longer than one.
   */
  get patienceMs(): number {
    const nowMs = performance.now()
    this.#patientUntilMs ??= nowMs + PATIENCE_MS
    return Math.max(0, this.#patientUntilMs - nowMs)
  }

  /** Marks this group as running until `leave`. A reload may replace it in that time. */
  enter(resources: ResourceRegistry): void {
    if (this.#running !== undefined) return
    this.#running = resources.acquire(RunningGroups, '', () => new RunningGroups())
    this.#running.item.groups.add(this)
  }

  leave(): void {
    this.#running?.item.groups.delete(this)
    this.#running?.release()
    this.#running = undefined
  }

  /**
   * True if an earlier group of this process answers the queries that this one will answer after
   * the reload.
   */
  get replacesServing(): boolean {
    const groups = [...(this.#running?.item.groups ?? [])]
    return groups.some((other) => other !== this && other.#members.some((m) => m.serves()))
  }

  notify(host: string): void {
    for (const member of this.#members) member.notify(host)
  }

  stopFollowing(): void {
    for (const member of this.#members) member.stopFollowing()
  }

  async #assignInTurn(): Promise<void> {
    for (const member of this.#members) await member.claim()
  }
}
