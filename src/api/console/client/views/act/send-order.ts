import type { ShiftReport } from '../../../../../base/telemetry/status.ts'
import type { AdminDrain, AppliedDrain } from '../../../../../plugin/admin-drains.ts'
import { post, remove } from '../../shell/api.ts'
import type { Draft, ShiftDraft } from './order.ts'
import type { RecentAct } from './recent.tsx'

type SentAct = Omit<RecentAct, 'number'>

/** Sends an order. Returns what was done, and how to undo it. Rejects with RequestFault. */
export async function sendOrder(
  { act, selector, until, shift }: Draft,
  reason: string,
  actor: string,
  drains: readonly AdminDrain[],
): Promise<SentAct> {
  if (act === 'undrain') return sendUndrain(idOf(selector, drains), reason, actor)
  if (act === 'shift') return sendShift(shift, reason, actor)
  const end = until === '' ? {} : { until }
  const order = { selector, reason, actor, ...end }
  const applied = await post<AppliedDrain>('/v1/drains', order)
  const text = `drain ${applied.selector}, ${applied.endpoints} endpoints`
  const undo = async (): Promise<void> => {
    await remove(endPath(applied.id, `undo: ${reason}`, actor))
  }
  return { text, id: applied.id, isUndone: false, undo }
}

async function sendUndrain(drainId: string, reason: string, actor: string): Promise<SentAct> {
  const path = endPath(drainId, reason, actor)
  const { drains } = await remove<{ readonly drains: readonly AdminDrain[] }>(path)
  const undo = async (): Promise<void> => {
    for (const { selector, reason: why, actor: by, until, file } of drains) {
      const end = until === undefined ? {} : { until }
      const order = { selector, reason: why, actor: by, file, allowEmpty: true, ...end }
      await post('/v1/drains', order)
    }
  }
  const text = `end of ${drains.map(({ selector }) => selector).join(', ')}`
  return { text, id: drainId, isUndone: false, undo }
}

async function sendShift(shift: ShiftDraft, reason: string, actor: string): Promise<SentAct> {
  const { order, to } = await post<ShiftReport>('/v1/shifts', { ...shift, reason, actor })
  const shiftId = order?.id ?? ''
  const undo = async (): Promise<void> => {
    await remove(endPath(shiftId, `undo: ${reason}`, actor, '/v1/shifts'))
  }
  return { text: `shift of ${shift.name} to ${to}`, id: shiftId, isUndone: false, undo }
}

function idOf(selector: string, drains: readonly AdminDrain[]): string {
  const wanted = selector.trim()
  const found = drains.find((drain) => drain.selector === wanted || drain.id === wanted)
  return found?.id ?? wanted
}

/** Returns the path that ends an order. */
export function endPath(id: string, reason: string, actor: string, path = '/v1/drains'): string {
  return `${path}?${new URLSearchParams({ id, reason: reason.slice(0, 1000), actor })}`
}
