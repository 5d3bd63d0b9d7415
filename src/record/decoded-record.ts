import type { Endpoint } from './dns-record.ts'
import { findDownTargets } from './health.ts'
import { deriveLocalEndpoints } from './kdrnt.ts'
import { KDRNT } from './local-zone.ts'
import type { Contribution } from './owner-sets.ts'
import { type RecordContent, unpackRecord } from './pack.ts'
import { findSlowStartUnits } from './slow-start.ts'
import type { StoredRecord } from './source.ts'
import { lowerNameKey } from './validate/names.ts'

/** Up to this many owners are compared one by one: a map costs more. */
const LINEAR_MAX = 8
const NOTHING_DOWN: ReadonlySet<number> = new Set()

/** The endpoints of a record that name one owner, in its order; at least one. */
export interface OwnerGroup {
  /** `lowerNameKey` of the owner. */
  readonly key: string
  readonly owner: Uint8Array
  readonly contributions: readonly Contribution[]
}

/** The form in which a zone has its records. */
export interface RecordForm {
  /** Serve the gateway-local form of every record that isn't in that form already. */
  readonly isLocalForm: boolean
  /** What the local form of a record tells whole; without it, nothing. */
  readonly exportV2?: ExportV2
}

/**
 * TXT rdata that tells the endpoints of a record whole. Must always say the same of the same `record`.
 * `before`: what the record was when this one is a change of it.
 */
export type ExportV2 = (
  record: StoredRecord,
  content: RecordContent,
  before: StoredRecord | undefined,
) => readonly Uint8Array[]

/** True if a zone of that form has other names and endpoints than the record. */
export function isDerived(zoneLabel: string, { isLocalForm }: RecordForm): boolean {
  return isLocalForm && zoneLabel !== KDRNT
}

/** As long as its record is decoded. */
type GrowingGroup = OwnerGroup & { readonly contributions: Contribution[] }

/** The endpoints of one record as a zone has them, by owner: there may be as many owners as endpoints. */
export class DecodedRecord {
  readonly #groups: GrowingGroup[] = []
  readonly #owners: ReadonlySet<string> | undefined
  #byKey: Map<string, GrowingGroup> | undefined

  /**
   * `before`: what the record was when it is a change of it. `owners`: all that is wanted of a record that is served
   * as it is and has nothing down or rising.
   */
  constructor(
    record: StoredRecord,
    form: RecordForm,
    before?: StoredRecord,
    owners?: ReadonlySet<string>,
  ) {
    const { exportV2 } = form
    const content = unpackRecord(record.packed, owners)
    this.#owners = owners
    const derives = isDerived(content.zoneLabel, form)
    if (derives && content.isAggregate) return
    const endpoints = derives
      ? deriveLocalEndpoints(content, exportV2?.(record, content, before))
      : content.endpoints
    const isAllUp = derives || record.down.length === 0
    const down = isAllUp ? undefined : findDownTargets(endpoints, record.down)
    const { key, slowStart } = record
    const units =
      derives || slowStart === undefined
        ? undefined
        : findSlowStartUnits(endpoints, slowStart, down)
    const { createdSeconds } = content
    for (let i = 0; i < endpoints.length; i++) {
      const endpoint = endpoints[i]!
      const isDown = down?.[i] ?? NOTHING_DOWN
      this.#add({ key, createdSeconds, endpoint, down: isDown, units: units?.[i] })
    }
  }

  get groups(): readonly OwnerGroup[] {
    return this.#groups
  }

  /** False: more of the record has to be decoded to know what it says of that owner. */
  covers(key: string): boolean {
    return this.#owners === undefined || this.#owners.has(key)
  }

  /** `key`: `lowerNameKey` of an owner. */
  find(key: string): OwnerGroup | undefined {
    return this.#find(key)
  }

  #add(contribution: Contribution): void {
    const { owner }: Endpoint = contribution.endpoint
    const last = this.#groups.at(-1)
    if (last?.owner === owner) {
      last.contributions.push(contribution)
      return
    }
    const key = lowerNameKey(owner)
    const known = this.#find(key)
    if (known !== undefined) {
      known.contributions.push(contribution)
      return
    }
    const group = { key, owner, contributions: [contribution] }
    this.#groups.push(group)
    if (this.#groups.length > LINEAR_MAX)
      this.#byKey ??= new Map(this.#groups.map((g) => [g.key, g]))
    this.#byKey?.set(key, group)
  }

  #find(key: string): GrowingGroup | undefined {
    if (this.#byKey !== undefined) return this.#byKey.get(key)
    return this.#groups.find((group) => group.key === key)
  }
}
