import 'uplot/dist/uPlot.min.css'
import './traffic.css'
import { useMemo } from 'preact/hooks'
import type { TopName, TrafficPeriod, TrafficReport } from '../../../../../plugin/admin-traffic.ts'
import { Field } from '../../shell/field.tsx'
import { printAge, printPercent, printTime } from '../../shell/format.ts'
import { Link } from '../../shell/link.tsx'
import { Message } from '../../shell/message.tsx'
import { printable } from '../../shell/printable.ts'
import { Table } from '../../shell/table.tsx'
import { useParameters } from '../../shell/use-parameters.ts'
import { usePolled } from '../../shell/use-polled.ts'
import { Chart } from './chart.tsx'
import { latencyCurves, rateCurves, rcodeCurves } from './curves.ts'
import { Endpoints } from './endpoints.tsx'

export const id = 'traffic'
export const title = 'Traffic'

const PERIODS: Readonly<Record<TrafficPeriod, string>> = {
  '10m': '10 minutes',
  '1h': '1 hour',
  '24h': '24 hours',
}
const PERIOD_DEFAULT: TrafficPeriod = '1h'
const POLL_MS = 5000
const POLL_DAY_MS = 60_000

/** The queries of the server, and what endpoints answered. */
export function View() {
  const { get, set } = useParameters()
  const period = readPeriod(get('period'))
  const everyMs = period === '24h' ? POLL_DAY_MS : POLL_MS
  const { data, error } = usePolled<TrafficReport>(`/v1/traffic?period=${period}`, everyMs)
  return (
    <>
      <div class="form-row">
        <Field label="Period">
          <select
            value={period}
            onChange={({ currentTarget }) => set({ period: currentTarget.value })}
          >
            {Object.entries(PERIODS).map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        </Field>
      </div>
      <Message kind="error" text={error} />
      {data !== undefined && <Server report={data} />}
      <Endpoints period={period} everyMs={everyMs} />
      {data !== undefined && <TopNames report={data} />}
    </>
  )
}

function readPeriod(text: string): TrafficPeriod {
  return Object.keys(PERIODS).find((one): one is TrafficPeriod => one === text) ?? PERIOD_DEFAULT
}

function Server({ report }: { readonly report: TrafficReport }) {
  const { rates, rcodes, latency } = useMemo(() => {
    return {
      rates: rateCurves(report),
      rcodes: rcodeCurves(report),
      latency: latencyCurves(report),
    }
  }, [report])
  return (
    <>
      <p>
        The server has counted since {printTime(report.since)}. Values are means of{' '}
        {report.stepSeconds} seconds.
      </p>
      <div class="charts">
        <Chart title="Queries" unit="per second" {...rates} />
        <Chart title="Response codes" unit="per second" {...rcodes} />
        <Chart title="Latency in the server" unit="milliseconds" isLogarithmic {...latency} />
      </div>
    </>
  )
}

function TopNames({ report }: { readonly report: TrafficReport }) {
  const { topNames, countedSeconds } = report
  return (
    <Table
      caption={`Top names of the last ${printAge(countedSeconds)}, from a sample`}
      rows={topNames}
      keyOf={({ name, type, rcode }: TopName) => `${name} ${type} ${rcode}`}
      empty="No queries."
      columns={[
        {
          title: 'Name',
          cell: ({ name, type }) => (
            <Link view={id} parameters={{ name, type }}>
              {printable(name)}
            </Link>
          ),
        },
        { title: 'Type', cell: ({ type }) => printable(type) },
        {
          title: 'Response code',
          cell: ({ rcode }) => (rcode === 'none' ? 'no reply' : printable(rcode)),
        },
        { title: 'Share', cell: ({ share }) => printPercent(share), isNumber: true },
      ]}
    />
  )
}
