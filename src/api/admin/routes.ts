import type { AdminSite } from '../../plugin/admin.ts'
import type { ApiRequest } from './fastify-library.ts'
import { composeOpenApi } from './openapi.ts'
import type { Schema } from './schemas.ts'

/** One operation of the API. */
export interface AdminRoute {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly summary: string
  /** Schemas of the query parameters; all are optional. */
  readonly query?: Readonly<Record<string, Schema>>
  readonly body?: Schema
  /** Schema of the reply; undefined = any JSON object. */
  readonly reply?: Schema
  /** Returns the reply. Throws ApiFault. */
  readonly run: (site: AdminSite, request: ApiRequest) => unknown
}

const EVENTS_DEFAULT = 100
const EVENTS_MAX = 1000

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
    summary: 'The state of the server: zones, endpoints, peers, databases, snapshots and drops.',
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
]
