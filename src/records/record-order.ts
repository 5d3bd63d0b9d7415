import { recordId } from './record-source.ts'

/** What decides the place of a record among those with endpoints at one owner. */
export interface RecordRank {
  /** `namespace/name`. */
  readonly key: string
  /** 0 = unknown, which is the youngest. */
  readonly createdSeconds: number
  /** The site that it is from; '' = ours, without a name. */
  readonly site: string
  /** As in `RecordOrigin`; undefined = `recordId` of the key. */
  readonly id: string | undefined
  /** True = creation times of other sites cannot be compared with it. */
  readonly isUndated?: boolean | undefined
}

/**
 * Orders records by precedence: older ones first, then by site, then by id. So all sites order the records of all sites
 * alike. Records without a site are ordered by key.
 */
export function sortRecords<T extends RecordRank>(records: readonly T[]): T[] {
  const isDated = !records.some(({ isUndated }) => isUndated === true)
  return [...records].sort((a, b) => compareRecords(a, b, isDated))
}

/**
 * As `sortRecords`. `isDated`: false if any record of the list is undated. Then ages count only within a site, for all
 * records of the list: otherwise the order of three records could be a circle.
 */
export function compareRecords(a: RecordRank, b: RecordRank, isDated: boolean): number {
  if (a.site !== b.site && !isDated) return a.site < b.site ? -1 : 1
  const ageA = a.createdSeconds || Number.POSITIVE_INFINITY
  const ageB = b.createdSeconds || Number.POSITIVE_INFINITY
  if (ageA !== ageB) return ageA < ageB ? -1 : 1
  if (a.site !== b.site) return a.site < b.site ? -1 : 1
  const byId = a.site === '' ? 0 : compareTexts(idOf(a), idOf(b))
  return byId === 0 ? compareTexts(a.key, b.key) : byId
}

function idOf({ key, id }: RecordRank): string {
  return id ?? recordId(key)
}

function compareTexts(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
