import { InputError } from '../../base/errors.ts'
import type { AdminSite } from '../../plugin/admin.ts'
import type { DrainOrder } from '../../plugin/admin-drains.ts'
import type { ExplainQuestion } from '../../plugin/answer-explainer.ts'
import type { AdminRoute } from './admin-route.ts'
import { composeOpenApi } from './openapi.ts'
import { ApiFault } from './problem.ts'
import { COUNT, FLAG, object, TEXT } from './schema.ts'

const EVENTS_DEFAULT = 100
const EVENTS_MAX = 1000
/** 255 octets, each as `\\DDD`. */
const NAME_CHARACTERS_MAX = 1020
const SELECTOR_CHARACTERS_MAX = 4096

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

const ORDER = object(
  { selector: { ...TEXT, maxLength: SELECTOR_CHARACTERS_MAX } },
  {
    reason: { ...TEXT, maxLength: 1000 },
    actor: { ...TEXT, maxLength: 255, default: 'admin API' },
    until: { ...TEXT, maxLength: 64, description: 'a time (RFC 3339), or a duration such as 2h' },
    file: { ...TEXT, maxLength: 4096, description: 'needed if the server has several drain files' },
    allowEmpty: { ...FLAG, default: false },
  },
)

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
  {
    method: 'POST',
    path: '/v1/explain',
    summary: 'Why a client gets an answer.',
    body: QUESTION,
    reply: { $ref: 'Explanation#' },
    // The schema has checked the types.
    run: (site, { body }) => explain(site, body as ExplainQuestion),
  },
  {
    method: 'GET',
    path: '/v1/drains',
    summary: 'The drains that are in force.',
    reply: object({ drains: { type: 'array', items: { $ref: 'Drain#' } }, drainsOmitted: COUNT }),
    run: (site) => attempt(async () => site.drains.list()),
  },
  {
    method: 'POST',
    path: '/v1/drains',
    summary: 'Takes endpoints out of service.',
    body: ORDER,
    reply: { $ref: 'AppliedDrain#' },
    run: async (site, { body }) => {
      const applied = await attempt(() => site.drains.add(body as DrainOrder))
      if (applied !== undefined) return applied
      throw new ApiFault(503, 'too many drains wait; repeat the request')
    },
  },
  {
    method: 'DELETE',
    path: '/v1/drains',
    summary: 'Ends the drains that have an id, in all drain files.',
    query: { id: { ...TEXT, maxLength: 64, description: 'of the drains' } },
    requiredQuery: ['id'],
    reply: object({ drains: { type: 'array', items: { $ref: 'Drain#' } } }),
    run: async (site, { query }) => {
      const { id } = query as { readonly id: string }
      const drains = await attempt(() => site.drains.end(id))
      if (drains.length > 0) return { drains }
      throw new ApiFault(404, 'no drain has this id')
    },
  },
]

async function explain(site: AdminSite, question: ExplainQuestion): Promise<object> {
  const explanation = await attempt(() => site.explain(question))
  if (explanation !== undefined) return explanation
  throw new ApiFault(503, 'too many explanations wait, or the server reloads; repeat the request')
}

/** Rejects with ApiFault if the request is invalid. */
async function attempt<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    throw new ApiFault(400, error.print())
  }
}
