import type { AdminRole, AdminSite } from '../../plugin/admin.ts'
import type { ApiRequest } from './fastify-library.ts'
import type { Schema } from './schema.ts'
/** One operation of the API. */
export interface AdminRoute {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly summary: string
  /** Schemas of the query parameters. */
  readonly query?: Readonly<Record<string, Schema>>
  readonly requiredQuery?: readonly string[]
  readonly body?: Schema
  /** The default is 64 KiB. */
  readonly bodyOctetsMax?: number
  /** The role that it needs. The default is `view` for GET, and `operate` for other methods. */
  readonly role?: AdminRole
  /** Schema of the reply; undefined = any JSON object. */
  readonly reply?: Schema
  /** Returns the reply. Throws ApiFault. */
  readonly run: (site: AdminSite, request: ApiRequest) => unknown
}
