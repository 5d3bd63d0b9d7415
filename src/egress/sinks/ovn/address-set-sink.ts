import type { Clock } from '../../../base/clock.ts'
import type { Timers } from '../../../base/timers.ts'
import type { AddressFamily } from '../../../dns/text/address.ts'
import type { OperationResult } from '../../../ovsdb/client.ts'
import { OvsdbError } from '../../../ovsdb/connection.ts'
import type { OvsdbRow } from '../../../ovsdb/datum.ts'
import type { Sink } from '../../gate.ts'
import type { Selector } from '../../selectors/selector.ts'
import type { SinkUpdate } from '../sink-feed.ts'
import {
  type AddressSetRow,
  addReferences,
  addressSetRow,
  deleteRow,
  insertRow,
  SELECT_MATCHES,
  updateRow,
} from './address-set-row.ts'

/** What a transaction learns about its rows lets the next one succeed. One more for changes meanwhile. */
const ATTEMPTS = 4
/** Time until sets that are in use without a DNS name are checked again. */
const SWEEP_MS = 30_000
/** Rows that one transaction deletes. */
const DELETED_MAX = 500
/** Least time between two repairs of a row that another client changes. */
const REPAIR_MS = 10_000
const CONSTRAINT_VIOLATION = 'constraint violation'

/** The part of an OVSDB client that is used here. */
export interface AddressSetDatabase {
  /** The rows of `monitoredRows`, as known now. */
  rows(): Iterable<OvsdbRow>
  /** As in OvsdbClient. */
  transact(operations: readonly object[]): Promise<readonly OperationResult[]>
}

interface AddressSetSinkParts {
  readonly database: AddressSetDatabase
  /** The controller that the rows name as owner. Rows of other owners are never changed. */
  readonly owner: string
  /** Each name has a row for each of these. */
  readonly families: readonly AddressFamily[]
  readonly clock: Clock
  readonly timers: Timers
  /** Another client changed or deleted the rows of a selector: the feed must apply it again. */
  readonly onLoss: (selector: Selector) => void
  /** A sweep failed; '' = one succeeded. */
  readonly onSweep: (fault: string) => void
}

interface WantedRow {
  readonly selector: Selector
  readonly row: AddressSetRow
  repairedMs: number
  cancelRepair: (() => void) | undefined
}

/**
 * Publishes addresses as address sets of OVN Northbound: one for each selector and address family,
 * named by the text of the selector. An update is acknowledged when its transaction is committed.
 * No handle of a row is kept, so a row that another client deletes is made again.
 *
 * The set of a selector that is gone keeps its content while an ACL refers to it, and is deleted
 * later. The same holds for sets that an earlier process made.
 */
export class AddressSetSink implements Sink<SinkUpdate> {
  readonly #parts: AddressSetSinkParts
  /** By name of the row. */
  readonly #wanted = new Map<string, WantedRow>()
  /** Names of the owner's rows in the database. */
  #present = new Set<string>()
  /** Keys of the selectors whose rows are being written. */
  readonly #writing = new Set<string>()
  /** Resolves when no rows are being deleted. */
  #deletion: Promise<unknown> = Promise.resolve()
  #maySweep = false
  #isSweeping = false
  #isClosed = false
  #cancelSweep: (() => void) | undefined

  constructor(parts: AddressSetSinkParts) {
    this.#parts = parts
  }

  /** Rows that no selector has, but an ACL may use. */
  get unclaimed(): number {
    return this.#unclaimed().length
  }

  /** Rows in the database. */
  get size(): number {
    return this.#present.size
  }

  async apply({ selector, addresses, isGone }: SinkUpdate): Promise<string> {
    if (this.#isClosed) return 'closed'
    if (isGone) {
      this.#release(selector)
      return ''
    }
    const rows = this.#rowsOf(selector, addresses)
    for (const row of rows) this.#want(selector, row)
    this.#writing.add(selector.key)
    await this.#deletion
    try {
      return await this.#write(rows)
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    } finally {
      this.#writing.delete(selector.key)
    }
  }

  /** The client has connected: compares all rows with those that are wanted. */
  onSync(): void {
    const present = new Map<string, OvsdbRow>()
    for (const row of this.#parts.database.rows()) present.set(nameOf(row), row)
    this.#present = new Set(present.keys())
    for (const [name, { selector, row }] of this.#wanted) {
      // A write in progress has waited for the connection, and comes next.
      if (this.#writing.has(selector.key)) continue
      if (!isSame(present.get(name), row)) this.#parts.onLoss(selector)
    }
    this.#sweepIn(0)
  }

  /** A row was changed, by this sink or by another client. */
  onRow(before: OvsdbRow | undefined, after: OvsdbRow | undefined): void {
    if (before !== undefined) this.#present.delete(nameOf(before))
    if (after !== undefined) this.#present.add(nameOf(after))
    for (const name of new Set([before, after].map((row) => row && nameOf(row)))) {
      const wanted = this.#wanted.get(name ?? '')
      const row = after !== undefined && nameOf(after) === name ? after : undefined
      if (wanted !== undefined && !isSame(row, wanted.row)) this.#repair(wanted)
    }
    if (after !== undefined && !this.#wanted.has(nameOf(after))) this.#sweepIn(SWEEP_MS)
  }

  /** All selectors are applied: rows that none of them has may be deleted from now on. */
  beginSweeps(): void {
    this.#maySweep = true
    this.#sweepIn(0)
  }

  close(): void {
    this.#isClosed = true
    this.#cancelSweep?.()
    for (const { cancelRepair } of this.#wanted.values()) cancelRepair?.()
  }

  #rowsOf({ text }: Selector, addresses: readonly string[]): readonly AddressSetRow[] {
    const { owner, families } = this.#parts
    return families.map((family) => addressSetRow(owner, text, family, addresses))
  }

  #want(selector: Selector, row: AddressSetRow): void {
    const known = this.#wanted.get(row.name)
    known?.cancelRepair?.()
    const repairedMs = known?.repairedMs ?? Number.NEGATIVE_INFINITY
    this.#wanted.set(row.name, { selector, row, repairedMs, cancelRepair: undefined })
  }

  #release(selector: Selector): void {
    for (const { name } of this.#rowsOf(selector, [])) {
      this.#wanted.get(name)?.cancelRepair?.()
      this.#wanted.delete(name)
    }
    this.#sweepIn(0)
  }

  /** Returns '' or a fault. Rejects with OvsdbError. */
  async #write(rows: readonly AddressSetRow[]): Promise<string> {
    const { database, owner } = this.#parts
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const isThere = rows.map(({ name }) => this.#present.has(name))
      const operations = rows.map((row, i) => (isThere[i] ? updateRow(owner, row) : insertRow(row)))
      try {
        const results = await database.transact(operations)
        const lost = rows.filter((_, i) => isThere[i] && results[i]?.count === 0)
        for (const { name } of lost) this.#present.delete(name)
        if (lost.length === 0) return ''
      } catch (error) {
        if (!(error instanceof OvsdbError) || error.code !== CONSTRAINT_VIOLATION) throw error
        // Another row has this name: the owner's, which is not known here yet, or that of another.
        for (const { name } of rows) this.#present.add(name)
      }
    }
    const names = rows.map(({ name }) => name).join(' or ')
    return `address set ${names} exists and does not belong to ${owner}`
  }

  #repair(wanted: WantedRow): void {
    if (wanted.cancelRepair !== undefined) return
    const { clock, timers, onLoss } = this.#parts
    const repair = (): void => {
      wanted.cancelRepair = undefined
      wanted.repairedMs = clock.monotonic()
      onLoss(wanted.selector)
    }
    const waitMs = wanted.repairedMs + REPAIR_MS - clock.monotonic()
    if (waitMs <= 0) repair()
    else wanted.cancelRepair = timers.after(waitMs, repair)
  }

  #unclaimed(): string[] {
    return [...this.#present].filter((name) => !this.#wanted.has(name))
  }

  #sweepIn(delayMs: number): void {
    if (!this.#maySweep || this.#isClosed || this.#isSweeping) return
    if (this.#cancelSweep !== undefined && delayMs > 0) return
    this.#cancelSweep?.()
    this.#cancelSweep = this.#parts.timers.after(delayMs, () => {
      this.#cancelSweep = undefined
      void this.#sweep()
    })
  }

  async #sweep(): Promise<void> {
    if (this.#unclaimed().length === 0) return
    this.#isSweeping = true
    let fault = ''
    try {
      const used = await this.#references()
      const unused = this.#unclaimed().filter((name) => !used.has(name))
      for (let i = 0; i < unused.length && !this.#isClosed; i += DELETED_MAX) {
        await this.#delete(unused.slice(i, i + DELETED_MAX))
      }
    } catch (error) {
      fault = error instanceof Error ? error.message : String(error)
    }
    this.#isSweeping = false
    if (this.#isClosed) return
    this.#parts.onSweep(fault)
    if (this.#unclaimed().length > 0) this.#sweepIn(SWEEP_MS)
  }

  /** Names of the address sets that are in use. */
  async #references(): Promise<ReadonlySet<string>> {
    const used = new Set<string>()
    for (const { rows } of await this.#parts.database.transact(SELECT_MATCHES)) {
      for (const { match } of rows) addReferences(match, used)
    }
    return used
  }

  async #delete(names: readonly string[]): Promise<void> {
    // A selector that wants one of them by now keeps it; one that comes later waits for the end.
    const unclaimed = names.filter((name) => !this.#wanted.has(name))
    const { database, owner } = this.#parts
    const deletion = database.transact(unclaimed.map((name) => deleteRow(owner, name)))
    this.#deletion = deletion.catch(() => {})
    await deletion
  }
}

function nameOf(row: OvsdbRow): string {
  return String(row.name)
}

function isSame(row: OvsdbRow | undefined, { addresses }: AddressSetRow): boolean {
  const found = row?.addresses
  if (!(found instanceof Set) || found.size !== addresses.length) return false
  return addresses.every((address) => found.has(address))
}
