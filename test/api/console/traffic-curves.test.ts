import t from 'tap'
import {
  latencyCurves,
  printValue,
  rateCurves,
  rcodeCurves,
} from '../../../src/api/console/client/views/traffic/curves.ts'
import type { TrafficReport } from '../../../src/plugin/admin-traffic.ts'

const REPORT: TrafficReport = {
  now: '2026-01-01T00:00:21.000Z',
  since: '2026-01-01T00:00:00.000Z',
  period: '10m',
  start: '2026-01-01T00:00:00.000Z',
  stepSeconds: 10,
  queries: [1, 2],
  dropped: [0, 0],
  rcodes: [
    { rcode: 'NOERROR', rates: [1, 1] },
    { rcode: 'none', rates: [0, 1] },
  ],
  latencyMs: { p50: [0.1, null], p90: [0.2, null], p99: [0.3, null] },
  topNames: [],
  countedSeconds: 21,
  endpoints: [],
  endpointsOmitted: 0,
}
const START = Date.UTC(2026, 0, 1) / 1000

t.test('lines over time', async (t) => {
  t.strictSame(rateCurves(REPORT), {
    seconds: [START, START + 10],
    curves: [{ label: 'queries', values: [1, 2] }],
  })
  t.match(rcodeCurves(REPORT).curves, [{ label: 'NOERROR' }, { label: 'no reply' }])
  t.match(latencyCurves(REPORT).curves, [{ values: [0.1, null] }, {}, { label: '99 %' }])
})

t.test('dropped queries have a line if there are any', async (t) => {
  const { curves } = rateCurves({ ...REPORT, dropped: [0, 3] })
  t.strictSame(curves[1], { label: 'dropped', values: [0, 3] })
})

t.test('values', async (t) => {
  const table: [number | null | undefined, string][] = [
    [null, '-'],
    [undefined, '-'],
    [0, '0'],
    [0.01234, '0.0123'],
    [12.345, '12.3'],
    [1234.5, '1\u202f235'],
    [1234567, '1\u202f234\u202f567'],
  ]
  for (const [value, text] of table) t.equal(printValue(value), text)
})
