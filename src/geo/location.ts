import type { GeoCode } from './code.ts'

/** Where an address is, as far as a database or a custom net knows; '' or 0 = unknown. */
export interface Location {
  /** Label code of the custom net around it, `NET-OFFICE`; '' = none. */
  readonly net: string
  /** Autonomous system number: 0..2^32-1. */
  readonly asn: number
  /** ISO 3166-2 codes, widest first: `US-CA`. */
  readonly subdivisions: readonly string[]
  /** ISO 3166-1 alpha-2. */
  readonly country: string
  /** AF AN AS EU NA OC SA. */
  readonly continent: string
}

/** What is known of an address that no database and no net holds. */
export const UNKNOWN_LOCATION: Location = {
  net: '',
  asn: 0,
  subdivisions: [],
  country: '',
  continent: '',
}

/**
 * Every code text that a client at `location` matches, in the order of the GEO ladder: custom net,
 * ASN, subdivisions (the narrowest first), country, continent. The default `*` is not among them: it
 * says nothing about a place.
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

/** The codes of `codes` that match a client at `location`, in the order of the GEO ladder. */
export function codesMatching(location: Location, codes: readonly GeoCode[]): GeoCode[] {
  const byText = new Map(codes.map((code) => [code.text, code]))
  return ladderOf(location).flatMap((text) => byText.get(text) ?? [])
}
