import { equalNames } from '../dns/name/name.ts'
import type { CorefileView } from '../plugin/directive.ts'
import { type HealthOptions, NO_HEALTH, printProbing } from '../plugins/kuadrant/health-options.ts'
import type { KuadrantOptions } from '../plugins/kuadrant/options.ts'
import { siteOf } from './site.ts'
import { nameOf, type SourcePlace } from './source-place.ts'

/** A `kuadrant` block as the other blocks of its Corefile see it. */
export interface KuadrantBlock {
  readonly options: KuadrantOptions
  /** Name of its server block; complete once all setups ran. */
  readonly place: () => string
  /** Opens the source and claims the zones of the block, unless that was done before. */
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

/**
 * The `kuadrant` blocks of one Corefile. All blocks claim their zones before the first zone is
 * filled. Otherwise a record could be in a shorter zone for a moment, until a longer zone is
 * claimed, and count as a change there. For the same reason, all blocks stop before the first one
 * releases its zones.
 */
export class KuadrantBlocks {
  readonly #members: KuadrantBlock[] = []
  readonly #drafts: KuadrantOptions[] = []
  #assigned: Promise<void> | undefined
  #readBefore: Set<string> | undefined
  #patientUntilMs: number | undefined

  static of(corefile: CorefileView): KuadrantBlocks {
    const known = blocks.get(corefile) ?? new KuadrantBlocks()
    blocks.set(corefile, known)
    return known
  }

  add(member: KuadrantBlock): void {
    this.#members.push(member)
  }

  /** Adds a block before it is scanned: `sextant check` also checks blocks with faults. */
  addDraft(options: KuadrantOptions): void {
    this.#drafts.push(options)
  }

  get drafts(): readonly KuadrantOptions[] {
    return this.#drafts
  }

  get options(): readonly KuadrantOptions[] {
    return this.#members.map((member) => member.options)
  }

  /**
   * Returns how the records of a source are probed. One block with `probe` is enough for all blocks
   * that read the source.
   */
  probingOf(source: SourcePlace): HealthOptions {
    const probing = this.options.find(
      (options) => options.health?.probe !== undefined && nameOf(options.source) === nameOf(source),
    )
    return probing?.health ?? NO_HEALTH
  }

  /** True if another block probes the same source with different settings. */
  probesOtherwise({ source, health }: KuadrantOptions): boolean {
    if (health?.probe === undefined) return false
    const known = this.probingOf(source)
    return known.probe !== undefined && printProbing(known) !== printProbing(health)
  }

  /** True if a block of another site keeps its peer cache in the same file. */
  sharesMemory({ peering, site }: KuadrantOptions): boolean {
    const path = peering.peerCache?.path
    return this.options.some((other) => {
      return path !== undefined && other.peering.peerCache?.path === path && other.site !== site
    })
  }

  /** Returns the different site name that another block gives to the same records; '' = none. */
  otherNameOf(options: KuadrantOptions): string {
    const name = siteOf({ ...options, site: '' }, this.options)
    return options.site === '' || name === options.site ? '' : name
  }

  /** Names of the server blocks that have the zone. */
  placesOf(zone: Uint8Array): Set<string> {
    const having = this.#members.filter(({ options }) => {
      return options.zones.some((other) => equalNames(other, zone))
    })
    return new Set(having.map((member) => member.place()))
  }

  /**
   * Resolves once all blocks have claimed their zones. Rejects with the first error; it can be
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
   * True if an earlier Corefile of this process had read the source when the first block of this
   * one started. `isRead`: whether the source at a place has been read by now.
   */
  hadSource(source: SourcePlace, isRead: (place: SourcePlace) => boolean): boolean {
    this.#readBefore ??= new Set(
      this.options.filter((options) => isRead(options.source)).map(({ source }) => nameOf(source)),
    )
    return this.#readBefore.has(nameOf(source))
  }

  /**
   * Milliseconds to wait for a cluster. All blocks share one deadline, so that many blocks of one
   * unreachable API wait no longer than one block.
   */
  get patienceMs(): number {
    const nowMs = performance.now()
    this.#patientUntilMs ??= nowMs + PATIENCE_MS
    return Math.max(0, this.#patientUntilMs - nowMs)
  }

  /** Marks these blocks as running until `leave`. A reload may replace them in that time. */
  enter(): void {
    entered.add(this)
  }

  leave(): void {
    entered.delete(this)
  }

  /**
   * True if an earlier Corefile of this process answers the queries that this one will answer after
   * the reload.
   */
  get replacesServing(): boolean {
    return [...entered].some((other) => other !== this && other.#members.some((m) => m.serves()))
  }

  takeNotify(host: string): void {
    for (const member of this.#members) member.notify(host)
  }

  stopFollowing(): void {
    for (const member of this.#members) member.stopFollowing()
  }

  async #assignInTurn(): Promise<void> {
    for (const member of this.#members) await member.claim()
  }
}

/** Blocks find each other through their Corefile. The entry is removed with the Corefile. */
const blocks = new WeakMap<CorefileView, KuadrantBlocks>()
const entered = new Set<KuadrantBlocks>()
