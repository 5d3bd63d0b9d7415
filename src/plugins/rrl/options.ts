import type { Rate } from '../../base/rate-table.ts'
import type { AddressSet } from '../../dns/text/address-set.ts'
import type { ZoneSet } from '../../zone/lookup/zone-set.ts'

/** Categories of replies, each with accounts and a limit of its own; `Request` counts every reply. */
export const Category = {
  Response: 0,
  Nodata: 1,
  Nxdomain: 2,
  Referral: 3,
  Error: 4,
  Request: 5,
} as const
export type Category = (typeof Category)[keyof typeof Category]

/** Names by `Category`, for logs and metrics. */
export const CATEGORY_NAMES: readonly string[] = [
  'response',
  'nodata',
  'nxdomain',
  'referral',
  'error',
  'request',
]

export interface RrlOptions {
  /** Undefined = the whole block. */
  readonly zones: ZoneSet | undefined
  readonly ipv4Bits: number
  readonly ipv6Bits: number
  /** By `Category`; undefined = no limit. */
  readonly rates: readonly (Rate | undefined)[]
  /** One of this many replies over the limit is sent truncated; 0 = all are dropped. */
  readonly slip: number
  /** Most octets per second by which replies to all clients may exceed their queries; 0 = no limit. */
  readonly amplifiedOctets: number
  readonly tableSize: number
  readonly reportOnly: boolean
  readonly exempt: AddressSet | undefined
}
