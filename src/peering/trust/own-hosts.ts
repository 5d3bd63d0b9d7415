import { unpackRecord } from '../../record/pack.ts'
import { printHost } from '../../record/print-endpoint.ts'
import type { StoredRecord } from '../../record/source.ts'
import { HostIndex, namesAbove } from './host-index.ts'
import type { OwnNames } from './screen-shares.ts'

export interface OwnHostsParts {
  /** Apexes of the zones that are served; lower case, without a final dot. */
  readonly zones: readonly string[]
  /** Names of the name servers of these zones: peers may not report them. */
  readonly servers: readonly string[]
  /** Our own records of a host and of its wildcard. */
  readonly recordsOf: (host: string) => readonly StoredRecord[]
}

const NONE: ReadonlySet<string> = new Set()

/** The names that the own records of a server have. */
export class OwnHosts {
  readonly #parts: OwnHostsParts
  readonly #zones: ReadonlySet<string>
  readonly #index = new HostIndex()
  readonly #names = new WeakMap<StoredRecord, ReadonlySet<string>>()

  constructor(parts: OwnHostsParts) {
    this.#parts = parts
    this.#zones = new Set(parts.zones)
  }

  /** Notes one more record of that host. */
  add(host: string): void {
    this.#index.add(host)
  }

  remove(host: string): void {
    this.#index.remove(host)
  }

  /** Returns our names, except those of the records `merged`, which are merged with what peers report. */
  beside(merged: ReadonlySet<StoredRecord>): OwnNames {
    const { recordsOf } = this.#parts
    return {
      isApex: (name) => this.#zones.has(name),
      hasHost: (host) => recordsOf(host).length > 0,
      hasHostBelow: (name) => this.#index.hasBelow(name),
      namesElsewhere: (host) => {
        const records = recordsOf(host).filter((record) => !merged.has(record))
        const servers = this.#serversAt(host)
        if (records.length === 0) return servers
        if (records.length === 1 && servers.size === 0) return this.#namesOf(records[0]!)
        return new Set([...servers, ...records.flatMap((record) => [...this.#namesOf(record)])])
      },
    }
  }

  #serversAt(host: string): ReadonlySet<string> {
    if (!this.#zones.has(host)) return NONE
    const { servers } = this.#parts
    return new Set(servers.filter((name) => [...namesAbove(name)].includes(host)))
  }

  #namesOf(record: StoredRecord): ReadonlySet<string> {
    const known = this.#names.get(record)
    if (known !== undefined) return known
    const { rootHost, isWildcardHost, endpoints } = unpackRecord(record.packed)
    const names = new Set(endpoints.map(({ owner }) => printHost(owner)))
    if (isWildcardHost) names.add(`*.${printHost(rootHost)}`)
    this.#names.set(record, names)
    return names
  }
}
