import type { Dispenser } from '../../corefile/dispenser.ts'
import type { Query } from '../../dns/message/query.ts'
import { isSubdomain } from '../../dns/name/name.ts'
import { ZoneSet } from '../../zone/lookup/zone-set.ts'
import { scanZoneArgs } from './zones.ts'

const ROOT = Uint8Array.of(0)

/** The names for which a plugin without an answer hands the query to the next plugin. */
export class Fallthrough {
  readonly #zones: ZoneSet

  /** `zones`: lower-case wire names; none = never fall through. */
  constructor(zones: readonly Uint8Array[]) {
    this.#zones = new ZoneSet(zones)
  }

  get isNever(): boolean {
    return this.#zones.zones.length === 0
  }

  /** True if a name at or below `zone` (lower-case wire form) can fall through. */
  touches(zone: Uint8Array): boolean {
    return this.#zones.zones.some((other) => isSubdomain(zone, other) || isSubdomain(other, zone))
  }

  /** True if the qname lies in one of the zones. Allocates nothing. */
  through(query: Query): boolean {
    return !this.isNever && this.#zones.match(query) !== -1
  }
}

/** The default until a plugin's `fallthrough` property is read. */
export const NO_FALLTHROUGH = new Fallthrough([])

/**
 * Reads `fallthrough [ZONES...]`; the dispenser's current token is `fallthrough`. No zones = all.
 * Throws InputError on an invalid zone.
 */
export function scanFallthrough(d: Dispenser): Fallthrough {
  const zones = scanZoneArgs(d, d.remainingArgs())
  return new Fallthrough(zones.length === 0 ? [ROOT] : zones)
}
