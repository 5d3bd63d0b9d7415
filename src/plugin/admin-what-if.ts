/** A change to preview, as a client wrote it: exactly one of the members. */
export interface WhatIfOrder {
  /** Selector of a drain that begins: `site:dublin host:*.example.com`. */
  readonly drain?: string
  /** Id or selector of drains that end. */
  readonly undrain?: string
  readonly shift?: WhatIfShift
  /** YAML or JSON of DNSRecords that are added, or replace those with the same names. */
  readonly manifests?: string
}

/** A step of a shift of traffic. */
export interface WhatIfShift {
  /** The root host of the DNSRecords. */
  readonly name: string
  /** The set identifier that traffic moves to. */
  readonly to: string
  /** Share of these endpoints, 0..100; missing = no shift: the weights of the records. */
  readonly percent?: number
}

/** What a change would change, as `sextant what-if -o json` prints it. */
export interface WhatIfReply {
  /** DNSRecords that change. */
  readonly records: number
  /** Of these, how many are not compared, because there are too many. */
  readonly recordsOmitted: number
  /** Names that were compared, before and after. */
  readonly names: { readonly before: number; readonly after: number }
  /** Largest share first. */
  readonly changes: readonly WhatIfChange[]
  /** Changes with smaller shares that are not listed. */
  readonly changesOmitted: number
  /** What the comparison leaves out, and why the change would be refused. */
  readonly notes: readonly string[]
}

/** A change of one name and type. Shares are numbers from 0 to 1. */
export interface WhatIfChange {
  readonly name: string
  readonly type: string
  /** The server block, as its keys. */
  readonly block: string
  readonly kind: 'added' | 'removed' | 'changed' | 'leads'
  readonly isNew: boolean
  readonly via: readonly string[]
  /** The part of the clients with other answers: the larger one of IPv4 and IPv6. */
  readonly share: number
  readonly ipv4: number
  readonly ipv6: number
  readonly private4: number
  readonly private6: number
  readonly countries: readonly WhatIfPlace[]
  readonly continents: readonly WhatIfPlace[]
  readonly ttl?: { readonly before: number; readonly after: number } | undefined
  readonly tiers: readonly {
    readonly clients: string
    readonly before: string
    readonly after: string
  }[]
}

/** The part of the clients of a country or continent. */
interface WhatIfPlace {
  readonly code: string
  readonly ipv4: number
  readonly ipv6: number
}
