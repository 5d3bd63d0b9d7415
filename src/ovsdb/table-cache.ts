import {
  type ColumnKinds,
  changeRow,
  isRecord,
  type OvsdbRow,
  readColumns,
  readRow,
} from './datum.ts'

/** Rows of a table that the client follows. */
export interface MonitoredTable {
  readonly table: string
  readonly columns: ColumnKinds
  /** Conditions (RFC 7047 section 5.1). A row is read if it meets all of them; empty = every row is read. */
  readonly where: readonly unknown[]
}

/** `before` undefined = a new row; `after` undefined = the row is gone. */
export type RowListener = (before: OvsdbRow | undefined, after: OvsdbRow | undefined) => void

/** The monitored rows of one table, as the server reported them last. */
export class TableCache {
  readonly #kinds: ColumnKinds
  readonly #onChange: RowListener
  #rows = new Map<string, OvsdbRow>()

  constructor(kinds: ColumnKinds, onChange: RowListener) {
    this.#kinds = kinds
    this.#onChange = onChange
  }

  /** By UUID. */
  get rows(): ReadonlyMap<string, OvsdbRow> {
    return this.#rows
  }

  /**
   * Applies a `<table-update2>` (ovsdb-server(7)): the first one if `isInitial`, which reports no
   * changes. Returns '' or why the update is invalid; the rows before it are applied then.
   */
  apply(updates: unknown, isInitial: boolean): string {
    if (isInitial) this.#rows = new Map()
    if (updates === undefined) return ''
    if (!isRecord(updates)) return 'received table updates that are not an object'
    for (const [uuid, update] of Object.entries(updates)) {
      const before = this.#rows.get(uuid)
      const after = this.#rowAfter(before, update)
      if (after === 'invalid') return `received an invalid update of row ${uuid}`
      if (after === 'deleted') this.#rows.delete(uuid)
      else this.#rows.set(uuid, after)
      if (!isInitial) this.#onChange(before, after === 'deleted' ? undefined : after)
    }
    return ''
  }

  #rowAfter(before: OvsdbRow | undefined, update: unknown): OvsdbRow | 'deleted' | 'invalid' {
    if (!isRecord(update)) return 'invalid'
    if (Object.hasOwn(update, 'delete')) return 'deleted'
    if (Object.hasOwn(update, 'modify')) {
      const change = readColumns(update.modify, this.#kinds)
      return change === undefined || before === undefined ? 'invalid' : changeRow(before, change)
    }
    return readRow(update.insert ?? update.initial, this.#kinds) ?? 'invalid'
  }
}
