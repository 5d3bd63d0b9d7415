import { bundledDatabasePath } from '../../geo/mmdb/load.ts'

/** Vendors publish at least monthly, and networks move between countries all the time. */
const AGE_DAYS_MAX = 90
/** A user can replace the bundled database only with a release of Sextant. */
const BUNDLED_AGE_DAYS_MAX = 365
const DAY_SECONDS = 86_400

function daysSince(builtSeconds: number, nowMs: number): number {
  return Math.floor((nowMs / 1000 - builtSeconds) / DAY_SECONDS)
}

/**
 * Returns the warning about a database that is older than 90 days, or 365 days if it is the bundled one. Returns '' if
 * it is younger, or if `builtSeconds` (Unix seconds) is 0 = unknown.
 */
export function warnOfAge(path: string, builtSeconds: number, nowMs: number): string {
  const days = daysSince(builtSeconds, nowMs)
  const isBundled = path === bundledDatabasePath()
  const most = isBundled ? BUNDLED_AGE_DAYS_MAX : AGE_DAYS_MAX
  if (builtSeconds === 0 || days <= most) return ''
  const cure = isBundled
    ? 'update Sextant, or name a newer database after `geoip`'
    : 'replace the file with a newer version'
  return `old location database: ${path}, built ${days} days ago (limit ${most}): ${cure}`
}

/** For `check`: `, built 120 days ago`; '' if `builtSeconds` is 0 = unknown. */
export function printAge(builtSeconds: number, nowMs: number): string {
  return builtSeconds === 0 ? '' : `, built ${daysSince(builtSeconds, nowMs)} days ago`
}
