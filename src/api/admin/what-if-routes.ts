import type { WhatIfOrder } from '../../plugin/admin-what-if.ts'
import type { AdminRoute } from './admin-route.ts'
import { ApiFault, attempt } from './problem.ts'
import { COUNT, FLAG, list, object, type Schema, TEXT } from './schema.ts'

export const MANIFESTS_OCTETS_MAX = 1024 * 1024
const SELECTOR: Schema = { ...TEXT, maxLength: 4096 }
const SHARE: Schema = { type: 'number' }
const PLACES = list(object({ code: TEXT, ipv4: SHARE, ipv6: SHARE }))

/** The members of a change. */
export const CHANGE_MEMBERS: Readonly<Record<string, Schema>> = {
  drain: { ...SELECTOR, description: 'selector of a drain that begins' },
  undrain: { ...SELECTOR, description: 'id or selector of drains that end' },
  shift: object(
    { name: { ...TEXT, maxLength: 1020 }, to: { ...TEXT, maxLength: 255 } },
    { percent: { type: 'number', minimum: 0, maximum: 100, description: 'missing = no shift' } },
  ),
  manifests: { ...TEXT, description: 'YAML or JSON of DNSRecords to add or replace' },
}

const ORDER = object({}, CHANGE_MEMBERS)

const CHANGE = object(
  {
    ...{ name: TEXT, type: TEXT, block: TEXT },
    kind: { type: 'string', enum: ['added', 'removed', 'changed', 'leads'] },
    isNew: FLAG,
    via: list(TEXT),
    ...{ share: SHARE, ipv4: SHARE, ipv6: SHARE, private4: SHARE, private6: SHARE },
    ...{ countries: PLACES, continents: PLACES },
    tiers: list(object({ clients: TEXT, before: TEXT, after: TEXT })),
  },
  { ttl: object({ before: COUNT, after: COUNT }) },
)

/** Previews of changes, which change nothing. */
export const WHAT_IF_ROUTES: readonly AdminRoute[] = [
  {
    method: 'POST',
    path: '/v1/what-if',
    summary: 'What a drain, a shift or manifests would change.',
    role: 'view',
    bodyOctetsMax: MANIFESTS_OCTETS_MAX,
    body: ORDER,
    reply: object({
      records: { ...COUNT, description: 'DNSRecords that change' },
      recordsOmitted: { ...COUNT, description: 'of these, those that are not compared' },
      names: object({ before: COUNT, after: COUNT }),
      changes: list(CHANGE),
      changesOmitted: COUNT,
      notes: list(TEXT),
    }),
    run: async (site, { body }) => {
      const reply = await attempt(() => site.whatIf(body as WhatIfOrder))
      if (reply !== undefined) return reply
      throw new ApiFault(
        503,
        'too many comparisons wait, or the server reloads; repeat the request',
      )
    },
  },
]
