/** Where an address is, as far as a database or a custom net knows; '' or 0 = unknown. */
export interface Location {
  /** Code of the custom net (`net CIDR CODE`) that matched, upper case; '' = none. */
  readonly net: string
  /** Autonomous system number. */
  readonly asn: number
  /** ISO 3166-2 codes, widest first: `US-CA`. */
  readonly subdivisions: readonly string[]
  /** ISO 3166-1 alpha-2. */
  readonly country: string
  /** AF AN AS EU NA OC SA. */
  readonly continent: string
}
