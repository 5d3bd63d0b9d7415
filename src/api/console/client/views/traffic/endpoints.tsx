import type {
  EndpointTraffic,
  TrafficPeriod,
  TrafficReport,
} from '../../../../../plugin/admin-traffic.ts'
import { EndpointMark } from '../../shell/endpoint-patterns.tsx'
import { endpointStyle } from '../../shell/endpoint-style.ts'
import { printAge, printNumber, printPercent } from '../../shell/format.ts'
import { Message } from '../../shell/message.tsx'
import { NamePicker } from '../../shell/name-picker.tsx'
import { printable } from '../../shell/printable.ts'
import { Table } from '../../shell/table.tsx'
import { useParameters } from '../../shell/use-parameters.ts'
import { usePolled } from '../../shell/use-polled.ts'

interface EndpointsProps {
  readonly period: TrafficPeriod
  readonly everyMs: number
}

/** What the endpoints of a name answered, beside their weights. */
export function Endpoints({ period, everyMs }: EndpointsProps) {
  const { get, set } = useParameters()
  const [name, type] = [get('name'), get('type') || 'A']
  const query = new URLSearchParams({ period, name, type })
  const path = name === '' ? '' : `/v1/traffic?${query}`
  const { data, error } = usePolled<TrafficReport>(path, everyMs)
  return (
    <section aria-label="Endpoints of a name">
      <h2>Endpoints of a name</h2>
      <NamePicker
        name={name}
        type={type}
        onPick={(name, type) => set({ name, type })}
        action="Show endpoints"
      />
      <Message kind="error" text={error} />
      {data !== undefined && <EndpointTable name={name} type={type} report={data} />}
    </section>
  )
}

interface EndpointTableProps {
  readonly name: string
  readonly type: string
  readonly report: TrafficReport
}

function EndpointTable({ name, type, report }: EndpointTableProps) {
  const { endpoints, endpointsOmitted, countedSeconds } = report
  const marks = marksOf(endpoints)
  return (
    <>
      <Table
        caption={`Answers of ${printable(name)} ${printable(type)} in the last ${printAge(countedSeconds)}`}
        rows={endpoints}
        keyOf={({ zone, tier, endpoint }) => JSON.stringify([zone, tier, endpoint])}
        empty="The server does not choose among endpoints of this name and type, or does not count them."
        columns={[
          {
            title: 'Endpoint',
            cell: ({ endpoint }) => (
              <>
                <EndpointMark index={marks.get(endpoint)!} />
                {printable(endpoint) || 'several together'}
              </>
            ),
          },
          { title: 'Clients', cell: ({ tier }) => printTier(tier) },
          { title: 'Weight', cell: ({ weight }) => weight ?? '-', isNumber: true },
          { title: 'Share by weight', cell: ({ share }) => printPercent(share), isNumber: true },
          {
            title: 'Share of answers',
            cell: ({ answeredShare }) =>
              answeredShare === null ? '-' : printPercent(answeredShare),
            isNumber: true,
          },
          {
            title: 'Bar: answers, line: weight',
            cell: (one) => <ShareBar endpoint={one} index={marks.get(one.endpoint)!} />,
          },
          { title: 'Answers', cell: ({ answers }) => printNumber(answers), isNumber: true },
        ]}
      />
      {endpointsOmitted > 0 && (
        <p>{printNumber(endpointsOmitted)} endpoints with fewer answers are not listed.</p>
      )}
    </>
  )
}

/** The bar is the share of answers, the line the share by weight. The cells beside it have both as text. */
function ShareBar({
  endpoint,
  index,
}: {
  readonly endpoint: EndpointTraffic
  readonly index: number
}) {
  const { share, answeredShare } = endpoint
  return (
    <svg
      class="share"
      width="100"
      height="18"
      viewBox="0 0 100 18"
      aria-hidden="true"
      focusable="false"
    >
      <rect class="share-ground" width="100" height="18" />
      <rect y="3" height="12" width={(answeredShare ?? 0) * 100} fill={endpointStyle(index).fill} />
      <rect class="share-weight" x={Math.min(98, share * 100)} width="2" height="18" />
    </svg>
  )
}

function printTier(tier: string): string {
  if (tier === '') return 'all'
  return tier === '*' ? 'all others' : printable(tier)
}

/** An endpoint has the same mark in all tiers: its place among the sorted endpoints. */
function marksOf(endpoints: readonly EndpointTraffic[]): Map<string, number> {
  const names = [...new Set(endpoints.map(({ endpoint }) => endpoint))].sort()
  return new Map(names.map((name, i) => [name, i]))
}
