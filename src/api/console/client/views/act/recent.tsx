import { printable } from '../../shell/printable.ts'
import { Table } from '../../shell/table.tsx'

/** An act of this page, and how to undo it. */
export interface RecentAct {
  /** Distinguishes acts with the same order. */
  readonly number: number
  readonly text: string
  readonly id: string
  readonly isUndone: boolean
  readonly undo: () => Promise<void>
}

interface RecentProps {
  readonly acts: readonly RecentAct[]
  readonly undo: (act: RecentAct) => void
}

/** The last acts of this page. */
export function Recent({ acts, undo }: RecentProps) {
  if (acts.length === 0) return null
  return (
    <Table
      caption="Last acts of this page"
      rows={acts}
      keyOf={({ number }) => String(number)}
      columns={[
        { title: 'Act', cell: ({ text }) => printable(text) },
        { title: 'Id', cell: ({ id }) => printable(id) },
        {
          title: 'Undo',
          cell: (act) =>
            act.isUndone ? (
              'undone'
            ) : (
              <button type="button" aria-label={`Undo ${act.id}`} onClick={() => undo(act)}>
                Undo
              </button>
            ),
        },
      ]}
    />
  )
}
