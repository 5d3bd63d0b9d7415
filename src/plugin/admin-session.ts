import type { AdminRole } from './admin.ts'

/** What the client of a request may do. */
export interface AdminSession {
  readonly role: AdminRole
  readonly mayAct: boolean
  /** Why the client may not act; '' = it may. */
  readonly reason: string
  /** True if the server has tokens: one with the role `operate` allows acts. */
  readonly hasTokens: boolean
}
