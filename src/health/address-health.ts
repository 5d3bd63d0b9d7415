import type { ProbeAt } from '../records/health-check.ts'
import type { StoredRecord } from '../records/record-source.ts'
import type { RecordDrains } from './drain/drain.ts'

/** What probes found of the addresses of one record. Immutable: a change creates a new object. */
export interface RecordHealth {
  /** Addresses and host names that at least one probe found down, sorted. */
  readonly down: readonly string[]
  /** Those that at least one probe found up, and none down; sorted. For export to other sites. */
  readonly up: readonly string[]
  /** What probes of this site found of peers' addresses for the host, by address; absent = nothing. */
  readonly observed?: readonly HealthObservation[]
  /** Where DNSHealthCheckProbes probe addresses, in place of what their endpoints say; absent = nowhere else. */
  readonly probedAt?: readonly ProbedAddress[]
}

/** Where an address is probed. */
export interface ProbedAddress {
  readonly address: string
  readonly probeAt: ProbeAt
}

/** What a site found of an address that belongs to another site. */
export interface HealthObservation {
  /** An IP address or host name, lower case. */
  readonly address: string
  readonly health: 'up' | 'down'
  /** Unix time since which the health is the same. */
  readonly sinceSeconds: number
}

/** The health of a record that no probe reports on. */
export const UNKNOWN_HEALTH: RecordHealth = { down: [], up: [] }

/** A record, and the health of its addresses at one time. */
export interface RecordState {
  readonly record: StoredRecord
  readonly health: RecordHealth
  /** Missing = drains are not regarded. */
  readonly drains?: RecordDrains
}

/** Why an address is down: a text, or a function that returns the text of now; '' = it is not known. */
type DownReason = string | (() => string)

/** The finding of one probe on one address. */
export interface Finding {
  /** `namespace/name` of the record. */
  readonly recordKey: string
  /** An IP address or host name, lower case. */
  readonly address: string
  readonly health: 'up' | 'down'
  readonly reason?: DownReason | undefined
  /** Set = the address belongs to a peer: Unix time since which the health is the same. */
  readonly observedSeconds?: number | undefined
  /** Where the address is probed, if not as its endpoint says. */
  readonly probeAt?: ProbeAt | undefined
}

/**
 * The table of address health of one source of records. A row is an address of a record, because a
 * probe belongs to a record: two records may probe the same address with different settings. Its
 * value is how many probes found the address up, and how many down.
 *
 *     DNSHealthCheckProbes with a status ─┐                ┌─▶ HealthTable
 *     our own probes (RecordProbing)     ─┴─▶ this table ──┴─▶ peers
 *
 * `add` and `remove` notify no listener, so that a writer can change health and records together:
 * it writes to the table, then notifies of the records, then calls `publish`.
 */
export class AddressHealth {
  readonly #rows = new Map<string, RecordRows>()
  /** Records whose rows changed since the last `publish`. */
  #changed = new Set<string>()
  /** Records whose last row was removed since the last `publish`. */
  readonly #emptied = new Set<string>()
  readonly #listeners = new Set<(keys: ReadonlySet<string>) => void>()

  /** Keys of the records that a probe reports on. */
  get recordKeys(): Iterable<string> {
    return this.#rows.keys()
  }

  healthOf(key: string): RecordHealth {
    return this.#rows.get(key)?.health ?? UNKNOWN_HEALTH
  }

  subscribe(listener: (keys: ReadonlySet<string>) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Returns why a probe found the address down; '' = not known here. */
  reasonOf(recordKey: string, address: string): string {
    return this.#rows.get(recordKey)?.reasonOf(address) ?? ''
  }

  /** Counts one more probe with this finding. */
  add(finding: Finding): void {
    this.#count(finding, 1)
  }

  /** Counts one probe less with this finding. */
  remove(finding: Finding): void {
    this.#count(finding, -1)
  }

  /** Notifies the listeners of all changes since the last call. */
  publish(): void {
    if (this.#changed.size === 0) return
    const keys = this.#changed
    this.#changed = new Set()
    for (const key of this.#emptied)
      if (this.#rows.get(key)?.isEmpty === true) this.#rows.delete(key)
    this.#emptied.clear()
    for (const listener of this.#listeners) listener(keys)
  }

  #count(finding: Finding, step: 1 | -1): void {
    const { recordKey, address, health, reason, observedSeconds: sinceSeconds, probeAt } = finding
    let rows = this.#rows.get(recordKey)
    if (rows === undefined) {
      rows = new RecordRows()
      this.#rows.set(recordKey, rows)
    }
    if (sinceSeconds === undefined) rows.count(address, health, step)
    else rows.observe(address, step === 1 ? { address, health, sinceSeconds } : undefined)
    if (reason !== undefined) rows.explain(address, reason, step)
    if (probeAt !== undefined) rows.place(address, step === 1 ? probeAt : undefined)
    if (rows.isEmpty) this.#emptied.add(recordKey)
    this.#changed.add(recordKey)
  }
}

class RecordRows {
  /** Number of probes that found each health, by address. */
  readonly #counts = new Map<string, { up: number; down: number }>()
  /** Why probes found an address down, by address. */
  readonly #reasons = new Map<string, readonly DownReason[]>()
  readonly #observed = new Map<string, HealthObservation>()
  readonly #probedAt = new Map<string, ProbeAt>()
  #health = UNKNOWN_HEALTH
  #isStale = false

  get isEmpty(): boolean {
    return this.#counts.size === 0 && this.#observed.size === 0
  }

  /** The same object as before if the lists are equal. */
  get health(): RecordHealth {
    if (!this.#isStale) return this.#health
    this.#isStale = false
    const rows = [...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1))
    const down = rows.filter(([, count]) => count.down > 0).map(([address]) => address)
    const up = rows.filter(([, count]) => count.down === 0).map(([address]) => address)
    const observed = [...this.#observed.values()].sort(byAddress)
    const probedAt = [...this.#probedAt].map(([address, probeAt]) => ({ address, probeAt }))
    const found = {
      down,
      up,
      ...(observed.length === 0 ? {} : { observed }),
      ...(probedAt.length === 0 ? {} : { probedAt: probedAt.sort(byAddress) }),
    }
    const health = this.isEmpty ? UNKNOWN_HEALTH : found
    if (!isSameHealth(health, this.#health)) this.#health = health
    return this.#health
  }

  reasonOf(address: string): string {
    const [reason = ''] = this.#reasons.get(address) ?? []
    return typeof reason === 'string' ? reason : reason()
  }

  explain(address: string, reason: DownReason, step: 1 | -1): void {
    const before = this.#reasons.get(address) ?? []
    const place = before.indexOf(reason)
    const after = step === 1 ? [...before, reason] : before.filter((_, i) => i !== place)
    if (after.length === 0) this.#reasons.delete(address)
    else this.#reasons.set(address, after)
  }

  observe(address: string, observation: HealthObservation | undefined): void {
    if (observation === undefined) this.#observed.delete(address)
    else this.#observed.set(address, observation)
    this.#isStale = true
  }

  place(address: string, probeAt: ProbeAt | undefined): void {
    if (probeAt === undefined) this.#probedAt.delete(address)
    else this.#probedAt.set(address, probeAt)
    this.#isStale = true
  }

  count(address: string, health: 'up' | 'down', step: 1 | -1): void {
    let counts = this.#counts.get(address)
    if (counts === undefined) {
      counts = { up: 0, down: 0 }
      this.#counts.set(address, counts)
    }
    if (health === 'up') counts.up += step
    else counts.down += step
    if (counts.up + counts.down === 0) this.#counts.delete(address)
    this.#isStale = true
  }
}

export function isSameHealth(a: RecordHealth, b: RecordHealth): boolean {
  if (a === b) return true
  const isSame = isSameList(a.down, b.down) && isSameList(a.up, b.up)
  if (!isSame || JSON.stringify(a.observed) !== JSON.stringify(b.observed)) return false
  return JSON.stringify(a.probedAt) === JSON.stringify(b.probedAt)
}

function byAddress(a: { readonly address: string }, b: { readonly address: string }): number {
  return a.address < b.address ? -1 : 1
}

export function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, i) => text === b[i])
}
