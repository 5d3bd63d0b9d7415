import type { AdminDrain, DrainOrder } from '../../plugin/admin-drains.ts'
import type { AdminRoute } from './admin-route.ts'
import { ACTOR, ACTOR_DEFAULT, noteAct, REASON } from './audit.ts'
import { ApiFault, attempt } from './problem.ts'
import { COUNT, FLAG, list, object, TEXT } from './schema.ts'

const SELECTOR_CHARACTERS_MAX = 4096

const ORDER = object(
  { selector: { ...TEXT, maxLength: SELECTOR_CHARACTERS_MAX } },
  {
    reason: REASON,
    actor: ACTOR,
    until: { ...TEXT, maxLength: 64, description: 'a time (RFC 3339), or a duration such as 2h' },
    file: { ...TEXT, maxLength: 4096, description: 'needed if the server has several drain files' },
    allowEmpty: { ...FLAG, default: false },
  },
)

/** The drains in force, and orders that begin or end them. */
export const DRAIN_ROUTES: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/v1/drains',
    summary: 'The drains that are in force.',
    reply: object({ drains: list({ $ref: 'Drain#' }), drainsOmitted: COUNT }),
    run: (site) => attempt(async () => site.drains.list()),
  },
  {
    method: 'POST',
    path: '/v1/drains',
    summary: 'Takes endpoints out of service.',
    body: ORDER,
    reply: { $ref: 'AppliedDrain#' },
    run: async (site, request) => {
      const order = request.body as DrainOrder
      const applied = await attempt(() => site.drains.add(order))
      if (applied === undefined) throw new ApiFault(503, 'too many drains wait; repeat the request')
      const { id, selector, actor, reason } = applied
      noteAct(site, request, { act: 'drain', what: `${id} ${selector}`, actor, reason })
      return applied
    },
  },
  {
    method: 'DELETE',
    path: '/v1/drains',
    summary: 'Ends the drains that have an id, in all drain files.',
    query: {
      id: { ...TEXT, maxLength: 64, description: 'of the drains' },
      reason: REASON,
      actor: ACTOR,
    },
    requiredQuery: ['id'],
    reply: object({ drains: list({ $ref: 'Drain#' }) }),
    run: async (site, request) => {
      const { id, reason = '', actor = ACTOR_DEFAULT } = request.query as DrainEnd
      const drains: readonly AdminDrain[] = await attempt(() => site.drains.end(id))
      for (const { selector } of drains) {
        noteAct(site, request, { act: 'undrain', what: `${id} ${selector}`, actor, reason })
      }
      if (drains.length > 0) return { drains }
      throw new ApiFault(404, 'no drain has this id')
    },
  },
]

interface DrainEnd {
  readonly id: string
  readonly reason?: string
  readonly actor?: string
}
