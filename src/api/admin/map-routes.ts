import type { AdminSite } from '../../plugin/admin.ts'
import { type AnswerMap, MAP_STATES, type MapQuestion } from '../../plugin/admin-map.ts'
import type { AdminRoute } from './admin-route.ts'
import { ApiFault, attempt } from './problem.ts'
import { COUNT, FLAG, list, nullable, object, type Schema, TEXT } from './schema.ts'
import { CHANGE_MEMBERS, MANIFESTS_OCTETS_MAX } from './what-if-routes.ts'

/** 255 octets, each as `\\DDD`. */
const NAME_CHARACTERS_MAX = 1020
const SELECTOR_CHARACTERS_MAX = 4096

/** A host has no space; the set identifier may have some. */
const SHIFT = /^(\S+) (.+) (\d{1,3}(?:\.\d{1,6})?)$/

/** The parameters of an address. */
interface MapQuery extends Omit<MapQuestion, 'shift'> {
  readonly shift?: string
}

const SHARE: Schema = { type: 'number', description: 'of the addresses of the family, 0 to 1' }
const PLACES = list(object({ code: TEXT, group: { ...COUNT, description: 'index in `groups`' } }))

/** Schemas of the replies, by name. */
export const MAP_SCHEMAS: Readonly<Record<string, Schema>> = {
  AnswerMap: object({
    name: TEXT,
    type: TEXT,
    server: { ...TEXT, description: 'the address whose clients the map is for' },
    zone: TEXT,
    serial: nullable('integer', 'SOA serial; null = unknown'),
    preview: { ...TEXT, description: 'what the map shows instead of the present; empty = nothing' },
    names: { ...list(TEXT), description: 'the name, and the names that its CNAME records lead to' },
    isByPlace: { ...FLAG, description: 'false: the place of clients does not matter' },
    answerCount: { ...COUNT, description: 'endpoints that a client gets at once, at most' },
    answers: list(
      object({
        name: { ...TEXT, description: 'owner of the RRset' },
        targets: list(TEXT),
        setIdentifier: TEXT,
        record: { ...TEXT, description: 'namespace/name of the DNSRecord' },
        weight: nullable('number', 'as configured; null = none'),
        state: { type: 'string', enum: [...MAP_STATES] },
        detail: TEXT,
      }),
    ),
    answersOmitted: COUNT,
    groups: list(
      object({
        shares: list(
          object({
            answer: { ...COUNT, description: 'index in `answers`' },
            ipv4: SHARE,
            ipv6: SHARE,
          }),
        ),
        sharesOmitted: COUNT,
      }),
    ),
    countries: { ...PLACES, description: 'ISO 3166-1 codes with addresses in the databases' },
    others: {
      ...PLACES,
      description: 'clients without a country: `unknown` and `private` addresses',
    },
    notes: list(TEXT),
  }),
}

export const MAP_ROUTES: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/v1/map',
    summary: 'Which endpoints of a name the clients of each country get.',
    query: {
      name: { ...TEXT, maxLength: NAME_CHARACTERS_MAX },
      type: { ...TEXT, maxLength: 32, default: 'A' },
      drain: {
        ...TEXT,
        maxLength: SELECTOR_CHARACTERS_MAX,
        description: 'a selector: the answers as if this drain was in force',
      },
      undrain: {
        ...TEXT,
        maxLength: SELECTOR_CHARACTERS_MAX,
        description: 'id or selector of drains: the answers as if they had ended',
      },
      shift: {
        ...TEXT,
        maxLength: SELECTOR_CHARACTERS_MAX,
        pattern: SHIFT.source,
        description: '`HOST TO PERCENT`: the answers in this step of a shift',
      },
      event: {
        type: 'integer',
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description: 'id of an event: the answers after it',
      },
    },
    requiredQuery: ['name'],
    reply: { $ref: 'AnswerMap#' },
    // The schema has checked the types.
    run: (site, { query }) => map(site, scanQuery(query as MapQuery)),
  },
  {
    method: 'POST',
    path: '/v1/map',
    summary: 'The map after the change that the body describes.',
    role: 'view',
    bodyOctetsMax: MANIFESTS_OCTETS_MAX,
    body: object(
      { name: { ...TEXT, maxLength: NAME_CHARACTERS_MAX } },
      { type: { ...TEXT, maxLength: 32, default: 'A' }, ...CHANGE_MEMBERS },
    ),
    reply: { $ref: 'AnswerMap#' },
    run: (site, { body }) => map(site, body as MapQuestion),
  },
]

function scanQuery({ shift, ...question }: MapQuery): MapQuestion {
  if (shift === undefined) return question
  const [, name = '', to = '', percent] = SHIFT.exec(shift) ?? []
  return { ...question, shift: { name, to, percent: Number(percent) } }
}

async function map(site: AdminSite, question: MapQuestion): Promise<AnswerMap> {
  const found = await attempt(() => site.map(question))
  if (found !== undefined) return found
  throw new ApiFault(503, 'too many maps wait, or the server reloads; repeat the request')
}
