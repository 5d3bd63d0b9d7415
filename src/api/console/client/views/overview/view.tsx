import type { ServerProblem } from '../../../../../base/telemetry/problems.ts'
import type { KeyReport, SigningReport, ZoneStatus } from '../../../../../base/telemetry/status.ts'
import { printNumber, printTime } from '../../shell/format.ts'
import { Message } from '../../shell/message.tsx'
import { printable } from '../../shell/printable.ts'
import { useStatus } from '../../shell/status.ts'
import { Table } from '../../shell/table.tsx'

export const id = 'overview'
export const title = 'Overview'

/** What the server serves, and what is wrong. */
export function View() {
  const { data, error } = useStatus()
  if (data === undefined) return <Message kind="error" text={error} />
  return (
    <>
      <p>
        Process {data.pid} has been running since {printTime(data.started)}. Threads that answer
        queries: {data.threads}.
      </p>
      <Zones zones={data.zones} />
      <Signing zones={data.signing} />
      <Keys keys={data.keys} />
      <Problems problems={data.problems} />
    </>
  )
}

function Zones({ zones }: { readonly zones: readonly ZoneStatus[] }) {
  const count = (value: number | null | undefined): string =>
    value == null ? '-' : printNumber(value)
  return (
    <Table
      caption="Zones"
      rows={zones}
      keyOf={({ zone, directive, source }) => `${zone} ${directive} ${source}`}
      columns={[
        { title: 'Zone', cell: ({ zone }) => printable(zone) },
        { title: 'Source', cell: ({ directive, source }) => printable(`${directive}: ${source}`) },
        { title: 'Serial', cell: ({ serial }) => serial ?? 'not loaded', isNumber: true },
        { title: 'Records', cell: ({ records }) => count(records), isNumber: true },
        { title: 'RRsets', cell: ({ rrsets }) => count(rrsets), isNumber: true },
        { title: 'Served', cell: ({ endpoints }) => count(endpoints?.served), isNumber: true },
        { title: 'Down', cell: ({ endpoints }) => count(endpoints?.down), isNumber: true },
        { title: 'Drained', cell: ({ endpoints }) => count(endpoints?.drained), isNumber: true },
      ]}
    />
  )
}

/** Servers of earlier versions sign no zones. */
function Signing({ zones = [] }: { readonly zones: readonly SigningReport[] | undefined }) {
  if (zones.length === 0) return null
  return (
    <Table
      caption="Signed zones"
      rows={zones}
      keyOf={({ zone, policy, denial }) => `${zone} ${policy} ${denial}`}
      columns={[
        { title: 'Zone', cell: ({ zone }) => printable(zone) },
        { title: 'Policy', cell: ({ policy }) => printable(policy) },
        { title: 'Denial', cell: ({ denial }) => printable(denial) },
        { title: 'Expires', cell: ({ expires }) => (expires === null ? '-' : printTime(expires)) },
        { title: 'Fault', cell: ({ fault }) => printable(fault) },
      ]}
    />
  )
}

function Keys({ keys = [] }: { readonly keys: readonly KeyReport[] | undefined }) {
  if (keys.length === 0) return null
  return (
    <Table
      caption="Keys"
      rows={keys}
      keyOf={({ id, zone }) => `${zone} ${id}`}
      columns={[
        { title: 'Zone', cell: ({ zone }) => printable(zone) },
        { title: 'Role', cell: ({ role }) => printable(role.toUpperCase()) },
        { title: 'Algorithm', cell: ({ algorithm }) => printable(algorithm) },
        { title: 'Tag', cell: ({ tag }) => tag, isNumber: true },
        { title: 'State', cell: ({ state }) => printable(state) },
        {
          title: 'Due',
          cell: ({ nextStep }) => (nextStep === null ? '-' : printTime(nextStep)),
        },
        { title: 'Next step', cell: ({ nextStepText }) => printable(nextStepText ?? '-') },
      ]}
    />
  )
}

function Problems({ problems }: { readonly problems: readonly ServerProblem[] }) {
  return (
    <Table
      caption="Problems"
      rows={problems}
      keyOf={({ kind, place, object, reason }) => JSON.stringify([kind, place, object, reason])}
      empty="The server reports no problem."
      columns={[
        { title: 'Object', cell: ({ object, kind }) => printable(object || kind) },
        { title: 'Place', cell: ({ place }) => printable(place) },
        { title: 'Reason', cell: ({ reason }) => printable(reason) },
      ]}
    />
  )
}
