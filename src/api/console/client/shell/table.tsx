import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { printNumber } from './format.ts'

interface Column<T> {
  readonly title: string
  /** Texts of the server go through `printable`. */
  readonly cell: (row: T) => ComponentChildren
  readonly isNumber?: boolean
}

interface RowAttributes {
  readonly class?: string
  readonly [name: `data-${string}`]: string
}

interface TableProps<T> {
  readonly caption: string
  readonly columns: readonly Column<T>[]
  readonly rows: readonly T[]
  readonly keyOf: (row: T) => string
  /** More attributes of a row, such as `data-country`. */
  readonly attributesOf?: (row: T) => RowAttributes
  /** What an empty table means. */
  readonly empty?: string
  /** Rows per page; the default suits any table. */
  readonly pageRows?: number
}

/** Rows per page: a table of 10 000 rows must not slow down the page. */
const PAGE_ROWS_DEFAULT = 200

/** A table with a caption. The first column has the headers of the rows. Long ones have pages. */
export function Table<T>(props: TableProps<T>) {
  const { caption, columns, rows, keyOf, attributesOf = () => ({}), empty = 'None.' } = props
  const { pageRows = PAGE_ROWS_DEFAULT } = props
  const [wanted, setPage] = useState(0)
  const pages = Math.max(1, Math.ceil(rows.length / pageRows))
  const page = Math.min(wanted, pages - 1)
  const shown = rows.slice(page * pageRows, (page + 1) * pageRows)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table scrolls, also with the keyboard
    <section class="table" aria-label={caption} tabIndex={0}>
      <table>
        <caption>{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ title, isNumber }) => (
              <th key={title} scope="col" class={isNumber ? 'number' : undefined}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <tr key={keyOf(row)} {...attributesOf(row)}>
              {columns.map((column, i) => (
                <Cell key={column.title} column={column} row={row} isHeader={i === 0} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === 0 && <p class="empty">{empty}</p>}
      {pages > 1 && (
        <Pager caption={caption} page={page} pages={pages} rows={rows.length} open={setPage} />
      )}
    </section>
  )
}

interface CellProps<T> {
  readonly column: Column<T>
  readonly row: T
  readonly isHeader: boolean
}

function Cell<T>({ column, row, isHeader }: CellProps<T>) {
  const kind = column.isNumber ? 'number' : undefined
  const content = column.cell(row)
  return isHeader ? (
    <th scope="row" class={kind}>
      {content}
    </th>
  ) : (
    <td class={kind}>{content}</td>
  )
}

interface PagerProps {
  readonly caption: string
  /** From 0. */
  readonly page: number
  readonly pages: number
  readonly rows: number
  readonly open: (page: number) => void
}

function Pager({ caption, page, pages, rows, open }: PagerProps) {
  return (
    <nav class="pager" aria-label={`Pages of ${caption}`}>
      <button type="button" disabled={page === 0} onClick={() => open(page - 1)}>
        Previous
      </button>
      <span role="status">
        Page {page + 1} of {pages}, {printNumber(rows)} rows
      </span>
      <button type="button" disabled={page === pages - 1} onClick={() => open(page + 1)}>
        Next
      </button>
    </nav>
  )
}
