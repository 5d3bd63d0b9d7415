import { bundledDatabasePath } from '../../geo/mmdb/load.ts'

/** Vendors publish at least monthly, and networks move between countries all the time. */
const AGE_DAYS_MAX = 90
const DAY_SECONDS = 86_400

/**
 * Returns the warning about a database that is older than 90 days; '' if it is younger, or `builtSeconds` (Unix
 * seconds) is 0 = unknown.
 */
export function warnOfAge(path: string, builtSeconds: number, nowMs: number): string {
  const days = Math.floor((nowMs / 1000 - builtSeconds) / DAY_SECONDS)
  if (builtSeconds === 0 || days <= AGE_DAYS_MAX) return ''
  const cure =
    path === bundledDatabasePath()
      ? 'update Sextant, or name a newer database after `geoip`'
      : 'replace the file with a newer version'
  return `old location database: ${path}, built ${days} days ago (limit ${AGE_DAYS_MAX}): ${cure}`
}
