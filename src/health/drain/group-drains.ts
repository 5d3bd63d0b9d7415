import { assert } from '../../base/assert.ts'
import type { Clock } from '../../base/clock.ts'
import type { ResourceLease } from '../../base/resource-registry.ts'
import { type Guarded, guarding } from '../../base/telemetry/guard.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { ProblemText } from '../../base/telemetry/problems.ts'
import type { RecordSource } from '../../records/record-source.ts'
import { ACTIVE_GROUPS_LABEL } from './active-groups.ts'
import type { EndpointDrain } from './drain.ts'
import { ScheduledDrains } from './drain-schedule.ts'
import type { GroupLookup } from './group-lookup.ts'
import { scanDrainSelector } from './selector.ts'

interface GroupDrainsOptions {
  readonly group: string
  /** Our own site. */
  readonly site: string
  /** One for each zone. */
  readonly lookups: readonly ResourceLease<GroupLookup>[]
  readonly clock: Clock
  readonly log: Logger
}

/**
 * Drains the endpoints of our site in each zone whose active groups do not include our group, as
 * Kuadrant does for active/passive sites. Until the active groups are known, the group is active.
 */
export class GroupDrains extends ScheduledDrains {
  readonly #options: GroupDrainsOptions
  readonly #lookups: readonly GroupLookup[]
  readonly #guarded: Guarded
  readonly #unsubscribes: readonly (() => void)[]

  constructor(options: GroupDrainsOptions) {
    super(options)
    const { lookups, log } = options
    this.#options = options
    this.#lookups = lookups.map(({ item }) => item)
    this.#guarded = guarding(log, 'Applying the active groups')
    const apply = (): void => void this.#guarded(() => this.#apply())
    this.#unsubscribes = this.#lookups.map((lookup) => lookup.subscribe(apply))
    this.#apply()
  }

  get problems(): readonly ProblemText[] {
    const faulty = this.#lookups.filter(({ fault }) => fault !== '')
    return faulty.map(({ zone, fault }) => {
      return { place: '', object: `zone ${zone}`, reason: `active groups of ${zone}: ${fault}` }
    })
  }

  /** The TXT record may be one of these records. The returned function ends this. */
  follow(source: RecordSource): () => void {
    const stops = this.#lookups.map((lookup) => lookup.follow(source))
    return () => {
      for (const stop of stops) stop()
    }
  }

  /** Starts the lookups. Resolves once the first attempt for each zone has ended, or takes too long. */
  async start(): Promise<void> {
    await Promise.all(this.#lookups.map((lookup) => lookup.start()))
  }

  override close(): void {
    for (const unsubscribe of this.#unsubscribes) unsubscribe()
    for (const { release } of this.#options.lookups) release()
    super.close()
  }

  #apply(): void {
    const { group, site } = this.#options
    const passive = this.#lookups.filter(({ groups }) => groups?.includes(group) === false)
    this.set(passive.map(({ zone }) => groupDrain(group, site, zone)))
    this.check()
  }
}

/** Returns the drain of a site in a zone while its group is not active. `zone`: as text. */
export function groupDrain(group: string, site: string, zone: string): EndpointDrain {
  const selector = scanDrainSelector([`site:${site}`, `zone:${zone}`])
  assert(typeof selector !== 'string', 'a site and a zone are valid terms')
  const reason = `group ${group} is not active`
  const actor = `${ACTIVE_GROUPS_LABEL}.${zone}`
  return { selector, reason, actor, createdMs: undefined, untilMs: undefined }
}
