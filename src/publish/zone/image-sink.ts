import { OPEN } from '../../steering/rules.ts'
import type { SteeringTable } from '../../steering/table.ts'
import { isStale } from '../../steering/tiers.ts'
import type { ZoneId } from '../../zone/image/types.ts'
import type { ZoneImage } from '../../zone/image/writer.ts'
import type { OwnerSet } from '../build/owner-set.ts'
import type { RRsetSink } from '../build/record-zone-options.ts'
import type { EndpointCounters } from './endpoint-counters.ts'

/** What the sink writes to. */
export type RRsetStore = Pick<ZoneImage, 'putRRset' | 'removeRRset' | 'declareName'>

/** Returns false for RRsets that the image must not get. `steering`: undefined = the set is not steered. */
type SetFilter = (owner: Uint8Array, type: number, steering: Uint32Array | undefined) => boolean

/** The counters of a zone's endpoints. */
interface ZoneCounters {
  readonly counters: EndpointCounters
  /** With final dot. */
  readonly zone: string
}

/**
 * Puts the RRsets of a zone into a zone image, with encoded steering. The caller publishes the
 * image.
 */
export class ImageSink implements RRsetSink {
  readonly #image: RRsetStore
  readonly #zone: ZoneId
  readonly #table: SteeringTable
  readonly #counted: ZoneCounters | undefined
  readonly #accepts: SetFilter

  /** `counted`: undefined = the zone's endpoints are not counted. */
  constructor(
    image: RRsetStore,
    zone: ZoneId,
    table: SteeringTable,
    counted?: ZoneCounters,
    accepts: SetFilter = () => true,
  ) {
    this.#image = image
    this.#zone = zone
    this.#table = table
    this.#counted = counted
    this.#accepts = accepts
  }

  /** Returns false if the image has exactly this RRset, or does not get it. */
  put(owner: Uint8Array, set: OwnerSet): boolean {
    const { type, ttlSeconds, rdata } = set
    if (set.pointSets !== undefined) this.#table.addPointSets(set.pointSets)
    const steering = this.#compose(owner, set)
    if (!this.#accepts(owner, type, steering)) return false
    return this.#image.putRRset(this.#zone, owner, { type, ttlSeconds, rdata, steering })
  }

  /** The counters belong to the names of the endpoints. */
  rename(owner: Uint8Array, set: OwnerSet, before: OwnerSet): boolean {
    const isNoted = hasNote(set) || hasNote(before)
    return (isNoted || this.#counted !== undefined) && this.put(owner, set)
  }

  remove(owner: Uint8Array, type: number): void {
    this.#image.removeRRset(this.#zone, owner, type)
    this.#counted?.counters.remove(this.#counted.zone, owner, type)
  }

  declare(owner: Uint8Array, isDeclared: boolean): void {
    this.#image.declareName(this.#zone, owner, isDeclared)
  }

  #compose(owner: Uint8Array, set: OwnerSet): Uint32Array | undefined {
    const { type, candidates } = set
    const rules = ignoresHealth(set) ? { ...set, ignoresHealth: true } : set
    const table = this.#table
    if (this.#counted === undefined) return table.compose(candidates, type, rules)
    const { counters, zone } = this.#counted
    return counters.count(zone, owner, set, (outcomes) => {
      return table.compose(candidates, type, rules, outcomes)
    })
  }
}

function ignoresHealth({ allDown }: OwnerSet): boolean {
  return allDown?.policy === OPEN
}

/** True if replies note something about the set. */
function hasNote(set: OwnerSet): boolean {
  return ignoresHealth(set) || set.endpoints.some(({ candidates }) => candidates.some(isStale))
}
