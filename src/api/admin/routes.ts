import type { AdminSite } from '../../plugin/admin.ts'
import type { ExplainQuestion } from '../../plugin/answer-explainer.ts'
import { sessionOf } from './access.ts'
import type { AdminRoute } from './admin-route.ts'
import { DRAIN_ROUTES } from './drain-routes.ts'
import { FLEET_ROUTES } from './fleet-routes.ts'
import { HEALTH_ROUTES } from './health-routes.ts'
import { MAP_ROUTES } from './map-routes.ts'
import { NAMES_ROUTES } from './names-routes.ts'
import { composeOpenApi } from './openapi.ts'
import { ApiFault, attempt } from './problem.ts'
import { COUNT, FLAG, object, TEXT } from './schema.ts'
import { SHIFT_ROUTES } from './shift-routes.ts'
import { TRAFFIC_ROUTES } from './traffic-routes.ts'
import { WHAT_IF_ROUTES } from './what-if-routes.ts'

const EVENTS_DEFAULT = 100
const EVENTS_MAX = 1000
/** 255 octets, each as `\\DDD`. */
const NAME_CHARACTERS_MAX = 1020

const QUESTION = object(
  { name: { ...TEXT, maxLength: NAME_CHARACTERS_MAX } },
  {
    type: { ...TEXT, maxLength: 32, default: 'A' },
    client: { ...TEXT, maxLength: 64, description: 'source address of the query' },
    subnet: {
      ...TEXT,
      maxLength: 64,
      description: 'client subnet; at least one of both is needed',
    },
    seed: { ...COUNT, maximum: 2 ** 32 - 1, default: 1 },
  },
)

const SESSION = object({
  role: { type: 'string', enum: ['view', 'operate'] },
  mayAct: FLAG,
  reason: { ...TEXT, description: 'why the client may not act; empty = it may' },
  hasTokens: FLAG,
})

/** All operations: the server and the OpenAPI document have the same list. */
export const ROUTES: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/openapi.json',
    summary: 'This document.',
    run: () => composeOpenApi(ROUTES),
  },
  {
    method: 'GET',
    path: '/v1/status',
    summary:
      'The state of the server: zones, endpoints, peers, shifts, databases, snapshots and drops.',
    reply: { $ref: 'Status#' },
    run: (site) => site.status(),
  },
  {
    method: 'GET',
    path: '/v1/events',
    summary: 'The changes of answers, the oldest first.',
    query: {
      after: {
        type: 'integer',
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        default: 0,
        description: 'only events with a greater id',
      },
      limit: { type: 'integer', minimum: 1, maximum: EVENTS_MAX, default: EVENTS_DEFAULT },
    },
    reply: { $ref: 'Events#' },
    run: (site, { query }) => {
      // The schema has set both.
      const { after, limit } = query as { readonly after: number; readonly limit: number }
      const log = site.events()
      return { events: log?.after(after, limit) ?? [], lastId: log?.lastId ?? 0 }
    },
  },
  ...HEALTH_ROUTES,
  {
    method: 'GET',
    path: '/v1/session',
    summary: 'What the client of the request may do.',
    reply: SESSION,
    run: sessionOf,
  },
  {
    method: 'POST',
    path: '/v1/explain',
    summary: 'Why a client gets an answer.',
    role: 'view',
    body: QUESTION,
    reply: { $ref: 'Explanation#' },
    // The schema has checked the types.
    run: (site, { body }) => explain(site, body as ExplainQuestion),
  },
  ...DRAIN_ROUTES,
  ...SHIFT_ROUTES,
  ...FLEET_ROUTES,
  ...NAMES_ROUTES,
  ...TRAFFIC_ROUTES,
  ...WHAT_IF_ROUTES,
  ...MAP_ROUTES,
]

async function explain(site: AdminSite, question: ExplainQuestion): Promise<object> {
  const explanation = await attempt(() => site.explain(question))
  if (explanation !== undefined) return explanation
  throw new ApiFault(503, 'too many explanations wait, or the server reloads; repeat the request')
}
