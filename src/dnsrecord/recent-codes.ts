import { type GeoCode, scanGeoCode } from '../geo/code.ts'

/**
 * Far above the number of countries and subdivisions. The bound is for network codes, which are
 * unlimited.
 */
const RECENT_MAX = 10_000
const recent = new Map<string, GeoCode>()

/** As `scanGeoCode`, with a cache, because the same few codes repeat. */
export function recallGeoCode(text: string): GeoCode | undefined {
  const known = recent.get(text)
  if (known !== undefined) return known
  const code = scanGeoCode(text)
  if (code === undefined) return undefined
  if (recent.size >= RECENT_MAX) recent.clear()
  // A copy through a buffer: a slice would keep the whole document in memory.
  recent.set(Buffer.from(text, 'utf8').toString('utf8'), code)
  return code
}
