import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AdminSite } from '../../plugin/admin.ts'

/** What is served at an admin address beside the API. */
export interface Companion {
  /** Answers a request; false = the path belongs to another part. */
  answer(site: AdminSite, request: IncomingMessage, response: ServerResponse): boolean
}

/** An optional part, which only servers load that use it. */
export interface OptionalCompanion {
  readonly isOn: (site: AdminSite) => boolean
  /** Resolves to its module, whose `open` throws InputError if files are missing. */
  readonly load: () => Promise<{ open(): Companion }>
}

/** The folder of each can be deleted together with its line. */
export const COMPANIONS: readonly OptionalCompanion[] = [
  { isOn: ({ console }) => console, load: () => import('../console/console.ts') },
]
