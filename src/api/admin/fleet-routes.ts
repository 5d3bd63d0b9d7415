import type { AdminRoute } from './admin-route.ts'
import { COUNT, FLAG, list, nullable, object, type Schema, TEXT } from './schema.ts'

const REPORT = object({
  version: TEXT,
  uptimeSeconds: nullable('integer', 'since the start of its process; null = unknown'),
  notReady: { ...list(TEXT), description: 'why it is not ready: plugin and reason' },
  problemCounts: { type: 'object', additionalProperties: COUNT },
  queriesPerSecond: nullable('number', 'null = unknown'),
  zones: list(
    object({
      zone: TEXT,
      directive: TEXT,
      serial: nullable('integer', 'SOA serial; null = no version is loaded'),
    }),
  ),
  zonesOmitted: COUNT,
  peers: list(
    object({
      peer: TEXT,
      site: TEXT,
      isUp: FLAG,
      ageSeconds: nullable('number', 'since it last confirmed its data; null = never'),
    }),
  ),
  peersOmitted: COUNT,
  drains: {
    anyOf: [list(TEXT), { type: 'null' }],
    description: 'selectors of the drains in force; null = unknown',
  },
  drainsOmitted: COUNT,
})

export const FLEET_SCHEMAS: Readonly<Record<string, Schema>> = {
  FleetServer: object({
    name: { type: 'string', description: 'as in the Corefile; empty = this server' },
    address: { type: 'string', description: 'of its admin API' },
    isSelf: FLAG,
    state: { type: 'string', enum: ['up', 'down', 'unread'] },
    error: { type: 'string', description: 'why it cannot be read, or only in part' },
    ageSeconds: nullable('number', 'age of `report`; null = no report'),
    report: { anyOf: [REPORT, { type: 'null' }] },
  }),
}

export const FLEET_ROUTES: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/v1/fleet',
    summary: 'This server and those that `server` names.',
    reply: object({ servers: list({ $ref: 'FleetServer#' }) }),
    run: async (site) => ({ servers: await site.fleet.list() }),
  },
]
