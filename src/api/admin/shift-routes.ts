import type { ShiftRequest } from '../../plugin/admin-shifts.ts'
import type { AdminRoute } from './admin-route.ts'
import { ACTOR, ACTOR_DEFAULT, noteAct, REASON } from './audit.ts'
import { ApiFault, attempt } from './problem.ts'
import { COUNT, list, object, type Schema, TEXT } from './schema.ts'

const SHIFTS: Schema = list({ $ref: 'Shift#' })
const STEPS_CHARACTERS_MAX = 255

const REQUEST = object(
  {
    name: { ...TEXT, maxLength: 1020, description: 'the root host of the DNSRecords' },
    to: { ...TEXT, maxLength: 255, description: 'the set identifier that traffic moves to' },
    steps: { ...TEXT, maxLength: STEPS_CHARACTERS_MAX, description: '`5%,25%,100%`' },
    bake: { ...TEXT, maxLength: 64, description: 'how long each step lasts: `10m`' },
  },
  { reason: REASON, actor: ACTOR },
)

/** The shifts of traffic, and orders that begin or end them. */
export const SHIFT_ROUTES: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/v1/shifts',
    summary: 'The shifts of traffic.',
    reply: object({ shifts: SHIFTS, shiftsOmitted: COUNT }),
    run: (site) => site.shifts.list(),
  },
  {
    method: 'POST',
    path: '/v1/shifts',
    summary: 'Moves traffic of a host to other endpoints in steps.',
    body: REQUEST,
    reply: { $ref: 'Shift#' },
    run: async (site, request) => {
      const order = request.body as ShiftRequest
      const shift = await attempt(() => site.shifts.begin(order))
      if (shift === undefined) throw new ApiFault(503, 'too many shifts wait; repeat the request')
      const { name, to, steps, reason = '', actor = ACTOR_DEFAULT } = order
      const what = `${shift.order?.id ?? ''} ${name} to ${to} by ${steps}`
      noteAct(site, request, { act: 'shift', what, actor, reason })
      return shift
    },
  },
  {
    method: 'DELETE',
    path: '/v1/shifts',
    summary: 'Ends the ordered shifts that have an id: the weights of the records apply.',
    query: { id: { ...TEXT, maxLength: 64 }, reason: REASON, actor: ACTOR },
    requiredQuery: ['id'],
    reply: object({ shifts: SHIFTS }),
    run: async (site, request) => {
      const { id, reason = '', actor = ACTOR_DEFAULT } = request.query as ShiftEnd
      const shifts = await attempt(async () => site.shifts.end(id))
      if (shifts.length === 0) throw new ApiFault(404, 'no ordered shift has this id')
      for (const { order, to } of shifts) {
        const what = `${id} ${order?.name ?? ''} to ${to}`
        noteAct(site, request, { act: 'unshift', what, actor, reason })
      }
      return { shifts }
    },
  },
]

interface ShiftEnd {
  readonly id: string
  readonly reason?: string
  readonly actor?: string
}
