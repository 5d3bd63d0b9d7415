import { equalNames } from '../../dns/name/name.ts'
import type { CorefileView } from '../../plugin/directive.ts'
import { type HealthOptions, NO_HEALTH, printProbing } from './health-options.ts'
import type { KuadrantOptions } from './options.ts'
import { siteOf } from './site.ts'
import { nameOf, type SourcePlace } from './source-place.ts'

/** A `kuadrant` block as the others of its Corefile see it. */
export interface KuadrantBlock {
  readonly options: KuadrantOptions
  /** Tells its server block from the others; complete once all setups ran. */
  readonly place: () => string
  /** Gets at the records and claims the zones of the block, unless it did so. */
  readonly claim: () => Promise<void>
  /** No change of records reaches the zones any more. */
  readonly stopFollowing: () => void
  /** True if queries get answers, from records or from a snapshot. */
  readonly serves: () => boolean
  /** A NOTIFY for the zone kdrnt came from that address. */
  readonly notify: (host: string) => void
}

/** A start waits this long for clusters; then queries get SERVFAIL until their records are there. */
const PATIENCE_MS = 5000

/**
 * The `kuadrant` blocks of one Corefile. All claim their zones before the first is filled: a record
 * must not be in one zone for the moment until a longer one comes, and count as a change there. All
 * stop before the first gives its zones back, for the same reason.
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

  /** A block about to be scanned: for `sextant check`, which looks at those with faults as well. */
  addDraft(options: KuadrantOptions): void {
    this.#drafts.push(options)
  }

  get drafts(): readonly KuadrantOptions[] {
    return this.#drafts
  }

  get options(): readonly KuadrantOptions[] {
    return this.#members.map((member) => member.options)
  }

  /** How the records of a source are probed: one block that says so is enough for all that read it. */
  probingOf(source: SourcePlace): HealthOptions {
    const probing = this.options.find(
      (options) => options.health?.probe !== undefined && nameOf(options.source) === nameOf(source),
    )
    return probing?.health ?? NO_HEALTH
  }

  /** True if another block says of the same source that it is probed, but not the same way. */
  probesOtherwise({ source, health }: KuadrantOptions): boolean {
    if (health?.probe === undefined) return false
    const known = this.probingOf(source)
    return known.probe !== undefined && printProbing(known) !== printProbing(health)
  }

  /** True if another block, of another site, remembers its peers in the same file. */
  sharesMemory({ peering, site }: KuadrantOptions): boolean {
    const path = peering.peerCache?.path
    return this.options.some((other) => {
      return path !== undefined && other.peering.peerCache?.path === path && other.site !== site
    })
  }

  /** What another block calls the site of the same records, if that is something else; else ''. */
  otherNameOf(options: KuadrantOptions): string {
    const name = siteOf({ ...options, site: '' }, this.options)
    return options.site === '' || name === options.site ? '' : name
  }

  /** Places of the blocks that have the zone. */
  placesOf(zone: Uint8Array): Set<string> {
    const having = this.#members.filter(({ options }) => {
      return options.zones.some((other) => equalNames(other, zone))
    })
    return new Set(having.map((member) => member.place()))
  }

  /**
   * Resolves once all have claimed; rejects with what stopped the first that could not, and may then be
   * called again.
   */
  assignZones(): Promise<void> {
    this.#assigned ??= this.#assignInTurn().catch((error) => {
      this.#assigned = undefined
      throw error
    })
    return this.#assigned
  }

  /**
   * True if an earlier Corefile of this process had read the source when the first block of this one started.
   * `isRead`: whether one has been read by now.
   */
  hadSource(source: SourcePlace, isRead: (place: SourcePlace) => boolean): boolean {
    this.#readBefore ??= new Set(
      this.options.filter((options) => isRead(options.source)).map(({ source }) => nameOf(source)),
    )
    return this.#readBefore.has(nameOf(source))
  }

  /** Milliseconds to wait for a cluster: blocks share them, so that many over one dead API wait no longer than one. */
  get patienceMs(): number {
    const nowMs = performance.now()
    this.#patientUntilMs ??= nowMs + PATIENCE_MS
    return Math.max(0, this.#patientUntilMs - nowMs)
  }

  /** From `enter` to `leave` its blocks may be those that a reload replaces. */
  enter(): void {
    entered.add(this)
  }

  leave(): void {
    entered.delete(this)
  }

  /** True if an earlier Corefile of this process answers queries that this one is about to take over. */
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

/** Blocks meet through the Corefile that they are in, which goes with them. */
const blocks = new WeakMap<CorefileView, KuadrantBlocks>()
const entered = new Set<KuadrantBlocks>()
