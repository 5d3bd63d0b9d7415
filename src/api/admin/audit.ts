import { escapeControls } from '../../base/telemetry/log.ts'
import type { AdminSite } from '../../plugin/admin.ts'
import type { ApiRequest } from './fastify-library.ts'
import { type Schema, TEXT } from './schema.ts'

export const ACTOR_DEFAULT = 'admin API'
export const ACTOR: Schema = { ...TEXT, maxLength: 255, default: ACTOR_DEFAULT }
export const REASON: Schema = { ...TEXT, maxLength: 1000 }

/** What a client ordered, as the client has it. */
interface AdminAct {
  readonly act: 'drain' | 'undrain' | 'shift' | 'unshift'
  /** The id of the order, and what it is about. */
  readonly what: string
  readonly actor: string
  readonly reason: string
}

/** Writes an act to the log and to the events. Texts of the client cannot forge lines. */
export function noteAct(
  site: AdminSite,
  { socket }: ApiRequest,
  { act, what, actor, reason }: AdminAct,
): void {
  const client = socket.remoteAddress ?? 'an unknown address'
  const why = reason === '' ? '' : `: ${reason}`
  const text = escapeControls(`${act} ${what} ordered by ${actor} from ${client}${why}`)
  site.log.info(text, 'admin-act', { act, actor, client, reason })
  site.events()?.add({ actor: { kind: 'act', name: escapeControls(actor) }, text })
}
