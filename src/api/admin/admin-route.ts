import type { AdminSite } from '../../plugin/admin.ts'
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
  /** Schema of the reply; undefined = any JSON object. */
  readonly reply?: Schema
  /** Returns the reply. Throws ApiFault. */
  readonly run: (site: AdminSite, request: ApiRequest) => unknown
}
