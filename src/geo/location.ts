import type { Coordinates } from './point.ts'

/** The location of an address, from databases and custom nets; '' or 0 = unknown. */
export interface Location {
  /** Label code of the custom net that contains the address, `NET-OFFICE`; '' = none. */
  readonly net: string
  /** Autonomous system number: 0..2^32-1. */
  readonly asn: number
  /** ISO 3166-2 codes, widest first: `US-CA`. */
  readonly subdivisions: readonly string[]
  /** ISO 3166-1 alpha-2. */
  readonly country: string
  /** AF AN AS EU NA OC SA. */
  readonly continent: string
  /** Undefined = unknown. They belong to the place: a source that sets another place removes them. */
  readonly coordinates?: Coordinates | undefined
}

/** The location of an address that no database and no net contains. */
export const UNKNOWN_LOCATION: Location = {
  net: '',
  asn: 0,
  subdivisions: [],
  country: '',
  continent: '',
}

/**
 * Returns the text of every code that a client at `location` matches, in the order of the GEO
 * ladder: custom net, ASN, subdivisions (the narrowest first), country, continent. Omits the
 * default `*`, which does not depend on the place.
 */
export function ladderOf(location: Location): string[] {
  const ladder: string[] = []
  if (location.net !== '') ladder.push(location.net)
  if (location.asn !== 0) ladder.push(`AS${location.asn}`)
  ladder.push(...location.subdivisions.toReversed())
  if (location.country !== '') ladder.push(location.country)
  if (location.continent !== '') ladder.push(`GEO-${location.continent}`)
  return ladder
}
