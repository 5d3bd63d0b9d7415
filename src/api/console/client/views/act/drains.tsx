import type { AdminDrain, DrainList } from '../../../../../plugin/admin-drains.ts'
import { printNumber, printTime } from '../../shell/format.ts'
import { printable } from '../../shell/printable.ts'
import { Table } from '../../shell/table.tsx'

interface DrainsProps {
  readonly list: DrainList
  /** Chooses the drain to end. */
  readonly choose: (selector: string) => void
}

/** The drains in force. Those that no drain file has end where they were made. */
export function Drains({ list, choose }: DrainsProps) {
  const end = ({ id, selector, file }: AdminDrain) => {
    if (file === '') return 'by an annotation or a group'
    return (
      <button
        type="button"
        aria-label={printable(`End drain ${id}`)}
        onClick={() => choose(selector)}
      >
        End…
      </button>
    )
  }
  return (
    <>
      <Table
        caption="Drains in force"
        rows={list.drains}
        keyOf={({ id, file, actor, reason }) => JSON.stringify([id, file, actor, reason])}
        empty="Nothing is drained."
        columns={[
          { title: 'Selector', cell: ({ selector }) => printable(selector) },
          { title: 'Id', cell: ({ id }) => printable(id) },
          { title: 'By', cell: ({ actor }) => printable(actor) },
          { title: 'Reason', cell: ({ reason }) => printable(reason) },
          { title: 'Since', cell: ({ created = '' }) => created && printTime(created) },
          { title: 'Until', cell: ({ until }) => (until === undefined ? '-' : printTime(until)) },
          { title: 'End', cell: end },
        ]}
      />
      {list.drainsOmitted > 0 && <p>{printNumber(list.drainsOmitted)} more are not listed.</p>}
    </>
  )
}
