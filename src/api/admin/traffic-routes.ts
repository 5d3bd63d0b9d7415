import { TRAFFIC_PERIODS, type TrafficQuestion } from '../../plugin/admin-traffic.ts'
import type { AdminRoute } from './admin-route.ts'
import { ApiFault, attempt } from './problem.ts'
import { COUNT, list, nullable, object, type Schema, TEXT, TIME } from './schema.ts'

const RATE: Schema = { type: 'number', minimum: 0, description: 'per second' }
const SHARE: Schema = { type: 'number', description: '0 to 1' }
const MILLISECONDS = list(nullable('number', 'milliseconds; null = no query was measured'))
const PERIOD: Schema = { type: 'string', enum: [...TRAFFIC_PERIODS] }

export const TRAFFIC_SCHEMAS: Readonly<Record<string, Schema>> = {
  Traffic: object({
    now: TIME,
    since: { ...TIME, description: 'when counting began' },
    period: PERIOD,
    start: { ...TIME, description: 'of the first step' },
    stepSeconds: COUNT,
    queries: list(RATE),
    dropped: list(RATE),
    rcodes: list(object({ rcode: TEXT, rates: list(RATE) })),
    latencyMs: object({ p50: MILLISECONDS, p90: MILLISECONDS, p99: MILLISECONDS }),
    topNames: list(object({ name: TEXT, type: TEXT, rcode: TEXT, share: SHARE })),
    countedSeconds: { ...COUNT, description: 'the time of topNames and endpoints' },
    endpoints: list(
      object({
        zone: TEXT,
        endpoint: TEXT,
        tier: TEXT,
        weight: nullable('integer', 'null = no weight, or several endpoints answer together'),
        share: SHARE,
        answers: COUNT,
        answeredShare: nullable('number', '0 to 1; null = the tier gave no answers'),
      }),
    ),
    endpointsOmitted: COUNT,
  }),
}

export const TRAFFIC_ROUTES: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/v1/traffic',
    summary: 'Rates, response codes, latency, top names, and what endpoints answered.',
    query: {
      period: { ...PERIOD, default: '1h' },
      name: { ...TEXT, maxLength: 1020, description: 'owner name of an RRset with a choice' },
      type: { ...TEXT, maxLength: 32, default: 'A' },
    },
    reply: { $ref: 'Traffic#' },
    run: async (site, { query }) => {
      const traffic = site.traffic()
      if (traffic === undefined) throw new ApiFault(404, 'traffic is not counted: set `console on`')
      // The schema has checked the types.
      const report = await attempt(async () => traffic.report(query as TrafficQuestion))
      if (report !== undefined) return report
      throw new ApiFault(503, 'the server reloads; repeat the request')
    },
  },
]
