import { concatNames } from '../../dns/name/name.ts'
import type { RecordHealth, RecordState } from '../../health/address-health.ts'
import { CHAIN_MAX } from '../../health/down-targets.ts'
import { NO_DRAINS } from '../../health/drain/drain.ts'
import { findOutTargets, type OutTargets } from '../../health/drain/drained-targets.ts'
import {
  groupKey,
  type InServiceEndpoints,
  selectEndpoints,
} from '../../health/drain/in-service-endpoints.ts'
import type { HealthRow } from '../../health/health-table.ts'
import { findSlowStartUnits } from '../../health/slow-start-units.ts'
import type { Endpoint } from '../../records/dns-record.ts'
import { idleLines } from '../../records/failover-names.ts'
import { deriveLocalEndpoints } from '../../records/kdrnt.ts'
import { KDRNT, KDRNT_ZONE } from '../../records/local-zone.ts'
import { hasNamesOutside } from '../../records/names-outside.ts'
import { type RecordContent, unpackRecord } from '../../records/pack.ts'
import { printHost } from '../../records/print-endpoint.ts'
import type { StoredRecord } from '../../records/record-source.ts'
import { lowerNameKey } from '../../records/validate/names.ts'
import type { Contribution } from './owner-set.ts'

/** Up to this many owners are compared one by one, because a map costs more. */
const LINEAR_MAX = 8
export const NOTHING_DOWN: ReadonlySet<number> = new Set()

/** The endpoints of one owner in a record, in the record's order; at least one. */
export interface OwnerGroup {
  /** `lowerNameKey` of the owner. */
  readonly key: string
  readonly owner: Uint8Array
  readonly contributions: readonly Contribution[]
}

/** The form in which a zone serves its records. */
export interface RecordForm {
  /** The site of records without `origin`; missing = they have none. */
  readonly site?: string | undefined
  /** True: every record that is not in gateway-local form is converted to it. */
  readonly isLocalForm: boolean
  /** Exports the complete endpoints in the local form; undefined = they are not exported. */
  readonly exportV2?: ExportV2
  /** Returns TXT rdata that exports what this site observed of peers' addresses; undefined = not exported. */
  readonly exportObserved?: (health: RecordHealth) => readonly Uint8Array[]
}

/**
 * Returns TXT rdata that exports the complete endpoints of a record. Must return the same for the
 * same record and health. `before`: the previous state, if `state` is a change.
 */
export type ExportV2 = (
  state: RecordState,
  content: RecordContent,
  before: RecordState | undefined,
) => readonly Uint8Array[]

/** True if a zone of that form serves other names and endpoints than the record contains. */
export function isDerived(zoneLabel: string, { isLocalForm }: RecordForm): boolean {
  return isLocalForm && zoneLabel !== KDRNT
}

/** A group that still grows while its record is decoded. */
type GrowingGroup = OwnerGroup & { readonly contributions: Contribution[] }

/**
 * The endpoints of one record as a zone serves them, by owner. A record may have as many owners as
 * endpoints. What a CNAME leads to is decided in `DeadNames`; only for the gateway-local form it is decided here.
 */
export class DecodedRecord {
  readonly state: HealthRow
  readonly #groups: GrowingGroup[] = []
  readonly #owners: ReadonlySet<string> | undefined
  #byKey: Map<string, GrowingGroup> | undefined

  /**
   * `before`: the previous state, if `state` is a change. `owners`: decode only these; allowed for a record that is
   * served as is, without addresses that are down, drained or in slow start, and without a shift and failover lists.
   */
  constructor(
    state: HealthRow,
    form: RecordForm,
    before?: RecordState,
    owners?: ReadonlySet<string>,
  ) {
    const { record, slowStart } = state
    const content = unpackRecord(record.packed, owners)
    this.state = state
    this.#owners = owners
    const derives = isDerived(content.zoneLabel, form)
    if (derives && isUnexported(record, content)) return
    const local = derives ? selectLocal(content, state) : undefined
    const served = local === undefined ? content : { ...content, endpoints: local.endpoints }
    const endpoints = derives
      ? deriveLocalEndpoints(served, ...exportedOf(state, content, form, before))
      : content.endpoints
    const out = derives ? undefined : findOut(endpoints, state, form)
    const { key } = record
    const origin = originOf(record, content, form)
    const units =
      derives || slowStart.length === 0
        ? undefined
        : findSlowStartUnits(endpoints, slowStart, out?.out)
    // In the gateway-local form, settings are data for peers.
    const settings = form.isLocalForm ? undefined : content.settings
    const idle = settings?.failover === undefined ? undefined : idleLines(content)
    const shift = form.isLocalForm ? undefined : state.shift
    for (let i = 0; i < endpoints.length; i++) {
      const endpoint = endpoints[i]!
      const down = local === undefined ? (out?.down[i] ?? NOTHING_DOWN) : keptOf(endpoint, local)
      const drained = out?.drained?.[i]
      const own = units?.[i]
      this.#add({
        key,
        ...origin,
        endpoint,
        down,
        drained,
        units: own,
        settings,
        idleLines: idle,
        shift,
      })
    }
  }

  get groups(): readonly OwnerGroup[] {
    return this.#groups
  }

  /** False: the record's endpoints of that owner were not decoded. */
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

/**
 * v1 peers do not evaluate health, so they get what is in service. The complete endpoints have health and
 * drains as data. Returns undefined if all is in service. The names of `kept` are those of the local form.
 */
function selectLocal(
  { endpoints }: RecordContent,
  { health, drains }: HealthRow,
): InServiceEndpoints | undefined {
  if (health.down.length === 0 && drains === NO_DRAINS) return undefined
  const { out } = findOutTargets(endpoints, health.down, drains)
  const working = selectEndpoints(endpoints, out)
  const kept = new Set<string>()
  for (const { owner, type } of working.endpoints) {
    const local = concatNames(owner, KDRNT_ZONE)
    const isKept = local !== undefined && working.kept.has(groupKey({ owner, type }))
    if (isKept) kept.add(groupKey({ owner: local, type }))
  }
  return { endpoints: working.endpoints, kept }
}

/** The data for peers that evaluate it: complete endpoints, and observations. */
function exportedOf(
  state: HealthRow,
  content: RecordContent,
  { exportV2, exportObserved }: RecordForm,
  before: RecordState | undefined,
): [exported: readonly Uint8Array[], observed: readonly Uint8Array[]] {
  return [exportV2?.(state, content, before) ?? [], exportObserved?.(state.health) ?? []]
}

/** Targets that are kept although they are out of service: those of other records are served before them. */
function keptOf(endpoint: Endpoint, { kept }: InServiceEndpoints): ReadonlySet<number> {
  return kept.has(groupKey(endpoint)) ? new Set(endpoint.rdata.keys()) : NOTHING_DOWN
}

/**
 * True for a record that has no gateway-local form of its own: each site exports its own records only, and peers accept
 * only names below the root host.
 */
function isUnexported({ origin }: StoredRecord, content: RecordContent): boolean {
  return content.isAggregate || origin !== undefined || hasNamesOutside(content)
}

/** Returns undefined if all targets are in service. */
function findOut(
  endpoints: readonly Endpoint[],
  { health, drains: all }: HealthRow,
  { isLocalForm }: RecordForm,
): OutTargets | undefined {
  // An operator has applied drains to what it wrote in gateway-local form.
  const drains = isLocalForm ? NO_DRAINS : all
  if (health.down.length === 0 && drains === NO_DRAINS) return undefined
  return findOutTargets(endpoints, health.down, drains, isLocalForm ? CHAIN_MAX : 0)
}

function originOf(
  { key, origin }: StoredRecord,
  content: RecordContent,
  { site = '' }: RecordForm,
): Pick<Contribution, 'site' | 'place' | 'isPartial' | 'isSilent'> {
  if (origin === undefined) return { place: key, site, isPartial: undefined, isSilent: undefined }
  const { isPartial, isSilent } = origin
  return { place: printPlace(origin.site, content), site: origin.site, isPartial, isSilent }
}

/** The name of a record of another site in messages. Sites do not export record names. */
export function printPlace(
  site: string,
  { rootHost, isWildcardHost }: Pick<RecordContent, 'rootHost' | 'isWildcardHost'>,
): string {
  return `${site}: record of ${isWildcardHost ? '*.' : ''}${printHost(rootHost)}`
}
