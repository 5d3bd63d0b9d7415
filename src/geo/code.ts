import type { Location } from './location.ts'

/**
 * A geo code of an endpoint, parsed. Rungs of the ladder, most specific first (docs: rules of choice):
 * custom net `NET-<label>`, ASN `AS64500`, subdivision `US-CA`, country `US`, continent `GEO-NA`,
 * default `*`.
 */
export type GeoRung = 'net' | 'asn' | 'subdivision' | 'country' | 'continent' | 'default'
export interface GeoCode {
  readonly rung: GeoRung
  /** Canonical text, upper case: also the identity of the code. */
  readonly text: string
}
export type { Location }
