import type { ShiftReport } from '../../../../../base/telemetry/status.ts'
import type { ShiftList } from '../../../../../plugin/admin-shifts.ts'
import { printNumber, printTime } from '../../shell/format.ts'
import { printable } from '../../shell/printable.ts'
import { Table } from '../../shell/table.tsx'

interface ShiftsProps {
  readonly list: ShiftList
  readonly end: (shift: ShiftReport) => void
  readonly mayAct: boolean
}

/** The shifts of traffic. Those of annotations end where they were made. */
export function Shifts({ list, end, mayAct }: ShiftsProps) {
  const endCell = (shift: ShiftReport) => {
    if (shift.order === undefined) return 'by an annotation'
    return (
      <button
        type="button"
        disabled={!mayAct}
        aria-label={printable(`End shift ${shift.order.id}`)}
        onClick={() => end(shift)}
      >
        End
      </button>
    )
  }
  const until = ({ until, state, reason }: ShiftReport): string =>
    until === null ? printable(reason || state) : printTime(until)
  return (
    <>
      <Table
        caption="Shifts of traffic"
        rows={list.shifts}
        keyOf={({ record, to }) => `${record} ${to}`}
        empty="No traffic is shifted."
        columns={[
          { title: 'DNSRecord', cell: ({ record }) => printable(record) },
          { title: 'To', cell: ({ to }) => printable(to) },
          { title: 'State', cell: ({ state }) => printable(state) },
          { title: 'Step', cell: ({ step, steps }) => `${step} of ${steps}`, isNumber: true },
          {
            title: 'Share',
            cell: ({ share }) => (share === null ? '-' : `${share} %`),
            isNumber: true,
          },
          { title: 'Until', cell: until },
          { title: 'By', cell: ({ order }) => printable(order?.actor ?? 'annotation') },
          { title: 'Reason', cell: ({ order }) => printable(order?.reason ?? '') },
          { title: 'End', cell: endCell },
        ]}
      />
      {list.shiftsOmitted > 0 && <p>{printNumber(list.shiftsOmitted)} more are not listed.</p>}
    </>
  )
}
