import { scanDuration } from '../base/duration.ts'
import type { SiteState } from './peer-endpoint.ts'

const SILENT_MS_MIN = 1000
const SILENT_MS_MAX = 365 * 24 * 3600 * 1000

/**
 * Scans `keep DURATION` or `remove DURATION`: how long a silent site keeps its addresses that no health check finds
 * up. Returns the milliseconds, or what is wrong.
 */
export function scanSilentSite(words: readonly string[]): number | string {
  const [what, text = '', ...more] = words
  if (more.length > 0 || text === '' || (what !== 'keep' && what !== 'remove')) {
    return 'silent-site needs `keep DURATION` or `remove DURATION`, such as keep 24h'
  }
  const silentMs = scanDuration(text)
  if (silentMs === undefined || silentMs < SILENT_MS_MIN || silentMs > SILENT_MS_MAX) {
    return `silent-site ${what} must be from 1s to 8760h, got ${text}`
  }
  return silentMs
}

/** Returns the sites that are silent for at least `silentMs`, each with the reason. One state per exporter and site. */
export function findSilentSites(
  siteStates: readonly SiteState[],
  nowMs: number,
  silentMs: number,
): ReadonlyMap<string, string> {
  const isSilent = ({ seenMs }: SiteState): boolean => nowMs - seenMs >= silentMs
  const heard = new Set(siteStates.filter((one) => !isSilent(one)).map(({ site }) => site))
  const silent = siteStates.map(({ site }) => site).filter((site) => !heard.has(site))
  return new Map(
    silent.map((site) => [site, `its site ${site} is silent for longer than silent-site allows`]),
  )
}
