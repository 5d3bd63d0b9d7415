import { unpackRecord } from '../../records/pack.ts'
import { printHost } from '../../records/print-endpoint.ts'
import type { StoredRecord } from '../../records/record-source.ts'
import type { RecordSet } from '../record-set.ts'
import { HostIndex, namesAbove } from './host-index.ts'
import { type HostNames, NameCounts, NO_NAMES } from './name-counts.ts'
import type { OwnNames } from './screen-site-states.ts'

interface OwnHostsParts {
  /** Apexes of the zones that are served; lower case, without a final dot. */
  readonly zones: readonly string[]
  /** Names of the name servers of these zones: peers may not report them. */
  readonly servers: readonly string[]
  /** Our own records of a host and of its wildcard. */
  readonly recordsOf: (host: string) => RecordSet
}

/** The names of this server's own records. */
export class OwnHosts {
  readonly #parts: OwnHostsParts
  readonly #zones: ReadonlySet<string>
  readonly #index = new HostIndex()
  /** By host, over all of its records; only for hosts that were requested. */
  readonly #counts = new Map<string, NameCounts>()

  constructor(parts: OwnHostsParts) {
    this.#parts = parts
    this.#zones = new Set(parts.zones)
  }

  add(host: string, record: StoredRecord): void {
    this.#index.add(host)
    this.#counts.get(host)?.add(namesOf(record))
  }

  /** Removes a record of that host. */
  remove(host: string, record: StoredRecord): void {
    this.#index.remove(host)
    const counts = this.#counts.get(host)
    if (counts === undefined) return
    if (this.#parts.recordsOf(host).size === 0) this.#counts.delete(host)
    else counts.remove(namesOf(record))
  }

  /** Returns our names, except those of the records `merged`, which are of the host with the records `own`. */
  beside(own: RecordSet, merged: readonly StoredRecord[]): OwnNames {
    const { recordsOf } = this.#parts
    return {
      isApex: (name) => this.#zones.has(name),
      hasHost: (host) => recordsOf(host).size > 0,
      hasHostBelow: (name) => this.#index.hasBelow(name),
      namesElsewhere: (host) => {
        const records = recordsOf(host)
        const without = records === own ? merged : []
        // Nearly always the merged records are all records of the host.
        if (records.size === without.length) return this.#serversAt(host)
        return without.length === 0
          ? this.#countsOf(host)
          : this.#countsOf(host).except(counted(without))
      },
    }
  }

  #countsOf(host: string): NameCounts {
    const known = this.#counts.get(host)
    if (known !== undefined) return known
    const counts = counted(this.#parts.recordsOf(host))
    counts.add(this.#serverNames(host))
    this.#counts.set(host, counts)
    return counts
  }

  #serversAt(host: string): HostNames {
    const names = this.#serverNames(host)
    if (names.length === 0) return NO_NAMES
    const counts = new NameCounts()
    counts.add(names)
    return counts
  }

  #serverNames(host: string): readonly string[] {
    if (!this.#zones.has(host)) return []
    return this.#parts.servers.filter((name) => [...namesAbove(name)].includes(host))
  }
}

function counted(records: Iterable<StoredRecord>): NameCounts {
  const counts = new NameCounts()
  for (const record of records) counts.add(namesOf(record))
  return counts
}

/** Returns each name once. */
function namesOf(record: StoredRecord): ReadonlySet<string> {
  const { rootHost, isWildcardHost, endpoints } = unpackRecord(record.packed)
  const names = new Set(endpoints.map(({ owner }) => printHost(owner)))
  if (isWildcardHost) names.add(`*.${printHost(rootHost)}`)
  return names
}
