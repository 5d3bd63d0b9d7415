import { TIMELINE_STATES } from '../../base/telemetry/endpoint-history.ts'
import { EVENT_KINDS } from '../../base/telemetry/event-log.ts'
import type { EndpointQuery } from '../../plugin/admin-health.ts'
import type { AdminRoute } from './admin-route.ts'
import { ApiFault } from './problem.ts'
import { COUNT, list, object, type Schema, TEXT, TIME } from './schema.ts'

const LIMIT_DEFAULT = 50
const LIMIT_MAX = 200
/** 255 octets, each as `\\DDD`. */
const NAME_CHARACTERS_MAX = 1020

const STATE: Schema = { type: 'string', enum: [...TIMELINE_STATES] }

const ENDPOINT = object({
  zone: TEXT,
  name: TEXT,
  type: TEXT,
  setIdentifier: TEXT,
  site: { type: 'string', description: 'the site that it is from; empty = this one' },
  targets: list(TEXT),
  record: { type: 'string', description: 'namespace/name of the DNSRecord' },
  state: STATE,
  detail: { type: 'string', description: 'what is out of service and why, or the drain or shift' },
  weightPercent: {
    ...COUNT,
    description: 'part of its weight that it gets; 100 except in slow start',
  },
  since: { type: 'string', description: 'when the state began (RFC 3339); empty = unknown' },
  before: {
    type: 'string',
    enum: [...TIMELINE_STATES, ''],
    description: 'state before the first transition; empty = none, or unknown',
  },
  transitions: list(
    object({
      time: TIME,
      state: STATE,
      reason: TEXT,
      actor: object({ kind: { type: 'string', enum: [...EVENT_KINDS] }, name: TEXT }),
    }),
  ),
})

/** The schemas of the replies. */
export const HEALTH_SCHEMAS: Readonly<Record<string, Schema>> = {
  EndpointHealth: ENDPOINT,
  Health: object({
    from: { type: 'string', description: 'RFC 3339: when the transitions begin' },
    now: TIME,
    endpoints: {
      type: 'array',
      items: { $ref: 'EndpointHealth#' },
      description: 'the worst first',
    },
    total: { ...COUNT, description: 'number of endpoints that the parameters select' },
    states: {
      type: 'object',
      additionalProperties: COUNT,
      description: 'number of them in each state; zeros are left out',
    },
    recordsOmitted: { ...COUNT, description: 'DNSRecords that were not read: there are too many' },
  }),
}

export const HEALTH_ROUTES: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/v1/health',
    summary: 'Endpoints with their states of the last 24 hours, the worst first.',
    query: {
      zone: { ...TEXT, maxLength: NAME_CHARACTERS_MAX },
      name: { ...TEXT, maxLength: NAME_CHARACTERS_MAX, description: 'a part of the owner name' },
      state: { type: 'string', enum: [...TIMELINE_STATES, 'not up'] },
      offset: { type: 'integer', minimum: 0, maximum: 1_000_000, default: 0 },
      limit: { type: 'integer', minimum: 1, maximum: LIMIT_MAX, default: LIMIT_DEFAULT },
    },
    reply: { $ref: 'Health#' },
    run: async (site, { query }) => {
      // The schema has checked the types.
      const page = await site.health.list(query as EndpointQuery)
      if (page !== undefined) return page
      throw new ApiFault(503, 'too many requests wait, or the server reloads; repeat the request')
    },
  },
]
