import type { NamesRequest } from '../../plugin/admin-names.ts'
import type { AdminRoute } from './admin-route.ts'
import { ApiFault } from './problem.ts'
import { FLAG, list, object, TEXT } from './schema.ts'

const NAMES_DEFAULT = 100
const NAMES_MAX = 1000
const PREFIX_CHARACTERS_MAX = 255

/** Operations on the names that DNSRecords serve. */
export const NAMES_ROUTES: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/v1/names',
    summary: 'Names that DNSRecords serve, with their types.',
    query: {
      prefix: {
        ...TEXT,
        maxLength: PREFIX_CHARACTERS_MAX,
        default: '',
        description: 'start of the names',
      },
      limit: { type: 'integer', minimum: 1, maximum: NAMES_MAX, default: NAMES_DEFAULT },
    },
    reply: object({
      names: list(object({ name: TEXT, zone: TEXT, types: list(TEXT) })),
      isComplete: { ...FLAG, description: 'false: the limit left out names' },
    }),
    // The schema has set both.
    run: async (site, { query }) => {
      const names = await site.names(query as NamesRequest)
      if (names !== undefined) return names
      throw new ApiFault(503, 'too many requests for names wait; repeat the request')
    },
  },
]
