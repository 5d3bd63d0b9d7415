import { InputError } from '../base/errors.ts'
import type { DrainReport, SelectedCount } from '../base/telemetry/drain-report.ts'
import { type DrainSelector, scanDrainSelector } from '../health/drain/selector.ts'
import type { DrainOrder } from '../plugin/admin-drains.ts'
import type { AdminArgs } from './admin-args.ts'
import { askAdmin, otherReply } from './admin-client.ts'
import { findAdmin } from './admin-target.ts'
import type { DrainArgs } from './drain-args.ts'

const PATH = '/v1/drains'
/** The end of the fault of a server that does not have the drain. */
const NO_SUCH_DRAIN = 'no drain has this id'
/** Most drains that a fault lists. */
const LISTED_MAX = 20
const DRAIN_ID = /^[0-9a-f]{8}$/

/** Adds a drain to a running server. Returns the drain, and what it selects now. Rejects with InputError. */
export async function addRunningDrain(
  admin: AdminArgs,
  selector: DrainSelector,
  { reason, actor, until, file, allowsEmpty }: DrainArgs & { readonly actor: string },
): Promise<DrainReport & SelectedCount> {
  const order: DrainOrder = {
    selector: selector.text,
    reason,
    actor,
    ...(until === undefined ? {} : { until }),
    ...(file === undefined ? {} : { file }),
    allowEmpty: allowsEmpty,
  }
  const reply = await askAdmin(findAdmin(admin), { method: 'POST', path: PATH, body: order })
  if (isReport(reply) && hasCount(reply)) return reply
  return refuseReply()
}

/** Ends the drains of a selector or an id (`words`) on a running server, and returns them. Rejects with InputError. */
export async function endRunningDrains(
  admin: AdminArgs,
  words: readonly string[],
): Promise<readonly DrainReport[]> {
  const path = `${PATH}?id=${idOf(words)}`
  try {
    return readDrains(await askAdmin(findAdmin(admin), { method: 'DELETE', path })).drains
  } catch (error) {
    if (!(error instanceof InputError) || !error.message.endsWith(NO_SUCH_DRAIN)) throw error
    throw notDrained(words, (await listRunningDrains(admin)).drains)
  }
}

/** The fault that no drain has this id or selector: lists those that exist. */
export function notDrained(
  words: readonly string[],
  drains: readonly Pick<DrainReport, 'id' | 'selector'>[],
): InputError {
  const listed = drains.slice(0, LISTED_MAX).map(({ id, selector }) => `${id} ${selector}`)
  const more = drains.length - listed.length
  const known = `${listed.join(', ') || 'none'}${more > 0 ? ` and ${more} more` : ''}`
  const fault = `no drain in force has the id or selector ${words.join(' ')}`
  return new InputError(undefined, `${fault}; the drains are: ${known}`)
}

/** Drains of a running server that are in force. */
interface RunningDrains {
  readonly drains: readonly DrainReport[]
  /** Number of drains that the server did not list. */
  readonly omitted: number
}

/** Rejects with InputError. */
export async function listRunningDrains(admin: AdminArgs): Promise<RunningDrains> {
  return readDrains(await askAdmin(findAdmin(admin), { method: 'GET', path: PATH }))
}

function readDrains(reply: unknown): RunningDrains {
  const { drains = undefined, drainsOmitted: omitted = 0 }: Readonly<Record<string, unknown>> =
    typeof reply === 'object' && reply !== null ? { ...reply } : {}
  if (!Array.isArray(drains) || !drains.every(isReport)) return refuseReply()
  return typeof omitted === 'number' ? { drains, omitted } : refuseReply()
}

/** The id of a drain depends on its selector only. */
function idOf(words: readonly string[]): string {
  const [word = ''] = words
  if (words.length === 1 && DRAIN_ID.test(word)) return word
  const selector = scanDrainSelector(words)
  if (typeof selector === 'string') throw new InputError(undefined, selector)
  return selector.id
}

function isReport(value: unknown): value is DrainReport {
  if (typeof value !== 'object' || value === null) return false
  const values = value as Readonly<Record<string, unknown>>
  const isText = (name: string): boolean => typeof values[name] === 'string'
  return (
    ['id', 'selector', 'reason', 'actor'].every(isText) &&
    ['created', 'until'].every((name) => values[name] === undefined || isText(name))
  )
}

function hasCount(value: DrainReport): value is DrainReport & SelectedCount {
  const { endpoints, records }: Readonly<Record<string, unknown>> = { ...value }
  return typeof endpoints === 'number' && typeof records === 'number'
}

function refuseReply(): never {
  throw otherReply('drains')
}
