import { NameBuffer } from '../dns/name/hashed-name.ts'
import type { ServingSource } from '../server/replay.ts'
import type { ZoneReader } from '../zone/image/reader.ts'
import { Match, NameFinder } from '../zone/lookup/name-finder.ts'

const WILDCARD = new Uint8Array([1, 0x2a])

/** Where an RRset of an answer comes from. */
export interface FoundRRset {
  /** Lower-case wire form; the wildcard, if one matches. */
  readonly owner: Uint8Array
  readonly apex: Uint8Array
  /** The directive that serves the zone. */
  readonly directive: string
  readonly reader: ZoneReader
  /** Offset of the RRset in the zone image; 0 = it has none of that type. */
  readonly rrset: number
}

/**
 * Finds an RRset as the server does. `name`: lower-case wire form. Undefined = the source has no zone with the name.
 */
export function findRRset(
  { directive, answerer: { reader } }: ServingSource,
  name: Uint8Array,
  type: number,
): FoundRRset | undefined {
  reader.refresh()
  const hashed = new NameBuffer()
  if (!hashed.set(name, 0, name.length)) return undefined
  const zone = reader.matchZone(hashed, 0)
  if (zone === 0) return undefined
  const { zoneLabel } = reader
  const apex = name.slice(hashed.labelOffset[zoneLabel]!)
  const finder = new NameFinder(reader)
  const match = finder.find(zone, hashed, zoneLabel, type)
  const encloser = name.slice(hashed.labelOffset[finder.label]!)
  const owner = match === Match.Wildcard ? Buffer.concat([WILDCARD, encloser]) : name
  const isThere = match === Match.Name || match === Match.Wildcard
  const rrset = isThere ? reader.findRRset(finder.body, type) : 0
  return { owner: new Uint8Array(owner), apex, directive, reader, rrset }
}
