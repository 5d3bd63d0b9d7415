/** Which served names to list. */
export interface NamesRequest {
  /** Start of the names, in any case; '' = all. */
  readonly prefix: string
  readonly limit: number
}

/** A name that DNSRecords serve, and the types of its RRsets. */
export interface AdminName {
  /** Absolute. */
  readonly name: string
  readonly zone: string
  readonly types: readonly string[]
}

/** Served names, sorted. */
export interface NameList {
  readonly names: readonly AdminName[]
  /** False: the limit left out names. */
  readonly isComplete: boolean
}
