import { ANNOTATIONS } from './annotation-rows.ts'
import {
  CNAME_ALONE,
  CNAME_WORDS,
  IDENTIFIER_WORDS,
  PLACE_WORDS,
  SAME_IDENTIFIER,
  SAME_PLACE,
  TARGETS_WORDS,
  TOO_MANY,
} from './conflict-words.ts'
import { byIdentifier, many, printMany } from './many-targets.ts'
import { HOST } from './nameserver.ts'
import type { Row } from './row.ts'
import {
  A,
  AMERICA,
  BELOW,
  BOTH,
  BY_CODE,
  CNAME_AMERICA,
  CNAME_EUROPE,
  EUROPE,
  type Exceptions,
  FROM_V1,
  HEAVY,
  LIGHT,
  NOTHING,
  ONE,
  ONLY_AMERICA,
  PLAIN_ONE,
  PLAIN_TWO,
  type Refusal,
  SHARED,
  set,
  sketch,
  THREE,
  TWO,
  V1,
  V1_CODES,
  V1_LAST,
} from './sketches.ts'

const ENDPOINTS: readonly Omit<Row, 'group'>[] = [
  { name: '`weight`', there: sketch(LIGHT), here: HEAVY, want: SHARED },
  { name: '`geo-code` of an address', there: EUROPE, here: AMERICA, want: BY_CODE, but: V1_CODES },
  {
    name: '`geo-code` of a CNAME to `CODE.…`',
    there: CNAME_EUROPE,
    here: CNAME_AMERICA,
    want: `app CNAME ttl=60 GEO-EU: geo-eu.${HOST}. GEO-NA: geo-na.${HOST}. *: geo-eu.${HOST}. (1) geo-na.${HOST}. (1); ${BELOW}`,
  },
  {
    name: '`default`',
    there: sketch(`${A} ${ONE} id=one geo=GEO-EU default=true`),
    here: AMERICA,
    want: `app A ttl=60 GEO-EU: ${ONE} GEO-NA: ${TWO} *: ${ONE}`,
    but: FROM_V1(
      `app A ttl=60 GEO-EU: ${ONE} *: ${ONE}`,
      `app A ttl=60 GEO-NA: ${TWO} *: ${ONE}+${TWO}`,
    ),
  },
  {
    name: '`location`',
    there: sketch(`${A} ${ONE} id=one location=52.52+13.40`),
    here: sketch(`${A} ${TWO} id=two location=48.86+2.35`),
    want: `app A ttl=60 points=48.86,2.35|52.52,13.40 @48.86,2.35: ${TWO} @52.52,13.40: ${ONE} *: ${ONE}+${TWO}`,
    but: FROM_V1(
      `app A ttl=60 points=52.52,13.40 @52.52,13.40: ${ONE} *: ${ONE}+${TWO}`,
      `app A ttl=60 points=48.86,2.35 @48.86,2.35: ${TWO} *: ${ONE}+${TWO}`,
    ),
  },
  {
    name: '`recordTTL`',
    there: sketch(`${A} ${ONE} ttl=30`),
    here: sketch(`${A} ${TWO} ttl=30`),
    want: BOTH.replace('60', '30'),
  },
  {
    name: '`setIdentifier`',
    there: sketch(`${A} ${ONE} id=one weight=1`),
    here: sketch(`${A} ${ONE} id=two weight=1`),
    want: `app A ttl=60 *: ${ONE} (1) ${ONE} (1)`,
    but: FROM_V1(`app A ttl=60 *: ${ONE}`, `app A ttl=60 *: ${ONE}`),
  },
]

/** With health checks, each site probes the addresses of all. */
const probes = (place: string) => `${BOTH}; probes ${ONE} at ${place}, ${TWO} at ${TWO}:8080`
const PROBED_AS_USUAL: Exceptions = {
  'v1 peer': { served: { here: probes(`${ONE}:8080`) }, says: V1 },
}
const ONLY_THERE: Refusal = {
  served: { here: `${BOTH}; probes ${TWO} at ${TWO}:8080` },
  says: /only its own site can probe its health-address/,
}

const PROBES: readonly Omit<Row, 'group'>[] = [
  ...(
    [
      ['`health-port`', 'health-port=9000', `${ONE}:9000`],
      ['`health-address`', 'health-address=198.51.100.1', '198.51.100.1:8080'],
    ] as const
  ).map(([name, property, place]) => ({
    name,
    there: sketch(`${A} ${ONE} ${property}`),
    here: PLAIN_TWO,
    isChecked: true,
    want: probes(place),
    but: PROBED_AS_USUAL,
  })),
  {
    name: '`health-address` in a private network',
    there: sketch(`${A} ${ONE} health-address=10.0.0.1`),
    here: PLAIN_TWO,
    isChecked: true,
    want: probes('10.0.0.1:8080'),
    but: { 'second cluster': ONLY_THERE, 'v2 peer': ONLY_THERE, ...PROBED_AS_USUAL },
  },
]

const HEALTH: readonly Omit<Row, 'group'>[] = [
  { name: 'up', there: { ...PLAIN_ONE, up: [ONE] }, here: PLAIN_TWO, want: BOTH },
  { name: 'unknown', there: PLAIN_ONE, here: PLAIN_TWO, want: BOTH },
  {
    name: 'one of several is down',
    there: { endpoints: [`${A} ${ONE},${THREE}`], down: [ONE] },
    here: PLAIN_TWO,
    want: `app A ttl=60 *: ${TWO}+${THREE}`,
  },
  {
    name: 'all of one site are down',
    there: { ...PLAIN_ONE, down: [ONE] },
    here: PLAIN_TWO,
    want: `app A ttl=60 *: ${TWO}`,
    but: V1_LAST,
  },
  {
    name: 'all are down',
    there: { ...PLAIN_ONE, down: [ONE] },
    here: { ...PLAIN_TWO, down: [TWO] },
    want: BOTH,
    but: FROM_V1(`app A ttl=60 *: ${TWO}`, `app A ttl=60 *: ${ONE}`),
  },
  {
    name: 'all are down, with `all-down closed` in the Corefiles',
    there: { ...PLAIN_ONE, down: [ONE] },
    here: { ...PLAIN_TWO, down: [TWO] },
    allDown: 'closed',
    want: '',
    but: FROM_V1(`app A ttl=60 *: ${TWO}`, `app A ttl=60 *: ${ONE}`),
  },
  {
    name: 'all are down, with `all-down two` in the Corefiles',
    there: { endpoints: [`${A} ${ONE} id=one`], down: [ONE] },
    here: { endpoints: [`${A} ${TWO} id=two`], down: [TWO] },
    allDown: 'two',
    want: `app A ttl=60 *: ${TWO}`,
    but: FROM_V1(`app A ttl=60 *: ${TWO}`, `app A ttl=60 *: ${ONE}`),
  },
  {
    name: 'all addresses that a CNAME leads to are down',
    there: { ...CNAME_EUROPE, down: [ONE] },
    here: CNAME_AMERICA,
    want: `app CNAME ttl=60 GEO-NA: geo-na.${HOST}. *: geo-na.${HOST}.; ${BELOW}`,
    but: FROM_V1(
      `app CNAME ttl=60 GEO-NA: geo-na.${HOST}. *: geo-na.${HOST}.; ${BELOW}`,
      `app CNAME ttl=60 GEO-EU: geo-eu.${HOST}. GEO-NA: geo-na.${HOST}. *: geo-eu.${HOST}. (1) geo-na.${HOST}. (1); ${BELOW}`,
    ),
  },
  {
    name: 'all addresses that a CNAME of another record leads to are down',
    there: { endpoints: [`geo-eu.${A} ${ONE}`], down: [ONE] },
    here: {
      endpoints: [`${HOST} CNAME geo-eu.${HOST} id=one geo=GEO-EU`, ...CNAME_AMERICA.endpoints],
    },
    want: `app CNAME ttl=60 GEO-NA: geo-na.${HOST}. *: geo-na.${HOST}.; ${BELOW}`,
    but: FROM_V1(
      `app CNAME ttl=60 GEO-NA: geo-na.${HOST}. *: geo-na.${HOST}.; ${BELOW}`,
      `app CNAME ttl=60 GEO-EU: geo-eu.${HOST}. GEO-NA: geo-na.${HOST}. *: geo-eu.${HOST}. (1) geo-na.${HOST}. (1); ${BELOW}`,
    ),
  },
  {
    name: 'in `slow-start` of the servers',
    there: sketch(LIGHT),
    here: HEAVY,
    slowStarts: [ONE],
    want: `app A ttl=60 *: ${ONE} (20) ${TWO} (1600)`,
  },
]

const HERE_ONLY_SAYS = /drain begins: .*not exported to other sites/
const THERE_ONLY =
  /drain address:192.0.2.2 selects endpoints of site .*: they are drained at this server only/
const NOT_IN_FILES: Refusal = {
  served: { there: BOTH, here: BOTH },
  says: /Corefile: .*namespace-drains needs a cluster/,
}

/** The operator exports no drain but those by annotations of records: a later issue carries them to other sites. */
const HERE_ONLY = (there: string): Exceptions => ({
  'second cluster': {
    served: { there, here: BY_CODE },
    says: HERE_ONLY_SAYS,
  },
})

const DRAINS: readonly Omit<Row, 'group'>[] = [
  ...[
    ['id:ID', 'id:one'],
    ['address:ADDRESS', `address:${ONE}`],
    ['geo:CODE', 'geo:GEO-EU'],
    ['site:SITE', 'site:there'],
    ['record:NAMESPACE/NAME', 'record:a/app'],
  ].map(([name, selector = '']) => ({
    name: `\`${name}\``,
    there: EUROPE,
    here: AMERICA,
    drains: [selector],
    want: ONLY_AMERICA,
    // All endpoints are drained, so all are served.
    ...(selector === 'site:there' ? { alone: BY_CODE } : {}),
    but: {
      ...HERE_ONLY(ONLY_AMERICA),
      ...FROM_V1(`app A ttl=60 *: ${TWO}`, `app A ttl=60 GEO-NA: ${TWO} *: ${ONE}+${TWO}`),
    },
  })),
  {
    name: '`zone:NAME`, `host:NAME`',
    there: { ...EUROPE, ...set('all-down', 'closed') },
    here: { endpoints: [`b.${A} ${TWO}`] },
    drains: [`zone:${HOST} geo:GEO-EU`, `host:${HOST} id:one`],
    want: `b.app A ttl=60 *: ${TWO}`,
    but: {
      'second cluster': {
        served: { here: `app A ttl=60 GEO-EU: ${ONE} *: ${ONE}; b.app A ttl=60 *: ${TWO}` },
        says: HERE_ONLY_SAYS,
      },
      ...FROM_V1(`b.app A ttl=60 *: ${TWO}`, `app A ttl=60 *: ${ONE}; b.app A ttl=60 *: ${TWO}`),
    },
  },
  {
    name: '`drain FILE`',
    there: EUROPE,
    here: AMERICA,
    drainFile: ['id:one'],
    want: ONLY_AMERICA,
    but: {
      ...HERE_ONLY(ONLY_AMERICA),
      ...FROM_V1(`app A ttl=60 *: ${TWO}`, `app A ttl=60 GEO-NA: ${TWO} *: ${ONE}+${TWO}`),
    },
  },
  {
    name: '`drain FILE` at another site',
    there: PLAIN_ONE,
    here: PLAIN_TWO,
    drainFile: [`address:${TWO}`],
    want: `app A ttl=60 *: ${ONE}`,
    but: {
      'second cluster': { served: { here: BOTH }, says: THERE_ONLY },
      'v2 peer': { served: { here: BOTH }, says: THERE_ONLY },
      'v1 peer': { served: { here: BOTH }, says: THERE_ONLY },
    },
  },
  {
    name: '`group` that is not active',
    there: PLAIN_ONE,
    here: PLAIN_TWO,
    passiveGroup: 'g1',
    want: `app A ttl=60 *: ${TWO}`,
    // All endpoints of the group are drained, so all are served.
    alone: BOTH,
    but: V1_LAST,
  },
  {
    name: '`namespace-drains`',
    there: PLAIN_ONE,
    here: { ...PLAIN_TWO, namespace: 'b' },
    namespace: { 'sextant.io/drain': 'racks move' },
    want: `app A ttl=60 *: ${TWO}`,
    but: {
      ...Object.fromEntries(['plain', 'v2 peer', 'v1 peer'].map((name) => [name, NOT_IN_FILES])),
      'second cluster': { served: { here: BOTH }, says: HERE_ONLY_SAYS },
    },
  },
]

/** Sites do not share set identifiers: this is no conflict. */
const TWO_SITES: Refusal = {
  served: {
    there: `app A ttl=60 *: ${ONE}+${TWO}`,
    here: `app A ttl=60 *: ${ONE}+${TWO}`,
  },
  says: NOTHING,
}

/** Two endpoints at different places. */
const TWO_PLACES = `app A ttl=60 points=48.86,2.35|52.52,13.40 @48.86,2.35: ${ONE} @52.52,13.40: ${ONE} *: ${ONE}`
const ONE_PLACE = `app A ttl=60 points= *: ${ONE}`
const MANY_ENDPOINTS = /a record may have up to 1000 endpoints/
const NO_CONFLICT: Refusal = { says: NOTHING }

const CONFLICTS: readonly Omit<Row, 'group'>[] = [
  {
    name: 'a CNAME beside other types',
    there: PLAIN_ONE,
    here: sketch(`${HOST} CNAME lb.example.net`),
    want: `app A ttl=60 *: ${ONE}`,
    says: CNAME_ALONE,
    words: CNAME_WORDS,
    // A v1 peer does not report the age of its record.
    but: FROM_V1(`app A ttl=60 *: ${ONE}`, 'app CNAME ttl=60 *: lb.example.net.'),
  },
  {
    name: 'different TTLs',
    there: PLAIN_ONE,
    here: sketch(`${A} ${TWO} ttl=30`),
    want: BOTH.replace('60', '30'),
    says: /: TTL 60 .*and 30 .*: 30 is served; set the same TTL for both$/,
  },
  {
    name: 'one set identifier at one site',
    there: sketch(`${A} ${ONE} id=x`),
    here: sketch(`${A} ${TWO} id=x`),
    want: `app A ttl=60 *: ${ONE}`,
    says: SAME_IDENTIFIER,
    words: IDENTIFIER_WORDS,
    but: {
      'second cluster': TWO_SITES,
      'v2 peer': TWO_SITES,
      'v1 peer': TWO_SITES,
    },
  },
  ...(
    [
      ['sticky', '16 48', '24 56', ' sticky=16/48', ' sticky=24/56'],
      ['answers', '1', 'off', ' answers=1', ''],
      ['all-down', 'closed', 'open', '', ''],
      ['failover', '*: two', '*: one', '', ''],
    ] as const
  ).map(([name, first, second, there, here]) => ({
    name: `different \`${name}\``,
    there: sketch(LIGHT, set(name, first)),
    here: { ...HEAVY, ...set(name, second) },
    want: SHARED.replace(' *', `${there} *`),
    says: new RegExp(`${name} .* and .*: the first applies; set the same in both`),
    but: FROM_V1(
      `app A ttl=60${there} *: ${ONE} (20) ${TWO} (80)`,
      `app A ttl=60${here} *: ${ONE} (20) ${TWO} (80)`,
    ),
  })),
  {
    name: 'one set identifier at one site, different `location`',
    there: sketch(`${A} ${ONE} id=x location=52.52+13.40`),
    here: sketch(`${A} ${ONE} id=x location=48.86+2.35`),
    want: TWO_PLACES,
    alone: ONE_PLACE,
    says: SAME_PLACE,
    words: PLACE_WORDS,
    but: {
      'second cluster': NO_CONFLICT,
      'v2 peer': NO_CONFLICT,
      ...FROM_V1(ONE_PLACE, ONE_PLACE),
    },
  },
  {
    name: '`location` of one of the two only',
    there: sketch(`${A} ${ONE} location=52.52+13.40`),
    here: PLAIN_TWO,
    want: `app A ttl=60 points=52.52,13.40 @52.52,13.40: ${ONE} *: ${ONE}+${TWO}`,
    says: /an endpoint .* has no location, but others have: .*; add a location/,
    but: { 'v1 peer': { served: { here: BOTH }, says: /has no location, but others have/ } },
  },
  {
    name: 'a `failover` entry that no endpoint has',
    there: { ...EUROPE, ...set('failover', 'GEO-EU: nowhere, GEO-NA') },
    here: AMERICA,
    want: BY_CODE,
    says: /failover names "nowhere".*which no endpoint has; correct the annotation/,
    but: V1_CODES,
  },
  {
    name: 'a record with more than 1000 endpoints',
    there: { endpoints: Array.from({ length: 1001 }, (_, i) => `${A} ${ONE} id=${i}`) },
    here: PLAIN_TWO,
    want: `app A ttl=60 *: ${TWO}`,
    says: MANY_ENDPOINTS,
    // The operator publishes no host whose record is invalid.
    but: { 'second cluster': { served: { there: '' }, says: MANY_ENDPOINTS } },
  },
  {
    name: 'more than 4096 targets at one name',
    there: many(1),
    here: many(2),
    want: printMany(many(1).endpoints, many(2).endpoints.sort(byIdentifier).slice(0, 7)),
    says: TOO_MANY,
    words: TARGETS_WORDS,
    but: {
      'v1 peer': {
        served: { there: printMany(many(1).endpoints), here: printMany(many(2).endpoints) },
        says: /an endpoint may have up to 256 targets/,
      },
    },
  },
  {
    name: 'different `shift`',
    there: sketch(LIGHT, set('shift', 'to=one steps=10% bake=1h')),
    here: { ...HEAVY, ...set('shift', 'to=two steps=10% bake=1h') },
    want: `app A ttl=60 *: ${ONE} (100000) ${TWO} (900000)`,
    says: /shift .* and .*: the first applies; set the same in both/,
    but: FROM_V1(
      `app A ttl=60 *: ${ONE} (100000) ${TWO} (900000)`,
      `app A ttl=60 *: ${ONE} (900000) ${TWO} (100000)`,
    ),
  },
]

const grouped = (group: Row['group'], rows: readonly Omit<Row, 'group'>[]): Row[] => {
  return rows.map((row) => ({ ...row, group }))
}

export const ROWS: readonly Row[] = [
  ...grouped('endpoint', [...ENDPOINTS, ...PROBES]),
  ...grouped('annotation', ANNOTATIONS),
  ...grouped('health', HEALTH),
  ...grouped('drain', DRAINS),
  ...grouped('conflict', CONFLICTS),
]
