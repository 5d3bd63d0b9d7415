import { type GeoCode, scanGeoCode } from '../geo/code.ts'

/** Far more than there are countries and subdivisions; networks and nets could go on for ever. */
const RECENT_MAX = 10_000
const recent = new Map<string, GeoCode>()

/** As `scanGeoCode`, but the same few codes again and again cost one look each. */
export function recallGeoCode(text: string): GeoCode | undefined {
  const known = recent.get(text)
  if (known !== undefined) return known
  const code = scanGeoCode(text)
  if (code === undefined) return undefined
  if (recent.size >= RECENT_MAX) recent.clear()
  // Through a buffer: a slice of a document would keep the document alive.
  recent.set(Buffer.from(text, 'utf8').toString('utf8'), code)
  return code
}
