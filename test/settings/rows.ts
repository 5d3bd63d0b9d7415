import type { Case, Sketch } from './columns.ts'

/** A setting or state, and what clients get by it. */
export interface Row extends Case {
  readonly name: string
}

const ONE = '192.0.2.1'
const TWO = '192.0.2.2'
const A = `app.k.example.com A`

const sketch = (endpoint: string, more: Partial<Sketch> = {}): Sketch => ({
  endpoints: [endpoint],
  ...more,
})
const annotated = (name: string, value: string) => ({
  annotations: { [`sextant.io/${name}`]: value },
})
const two = sketch(`${A} ${TWO}`)
const weighted = sketch(`${A} ${TWO} id=two weight=80`)

export const ROWS: readonly Row[] = [
  { name: 'weight', there: sketch(`${A} ${ONE} id=one weight=20`), here: weighted },
  {
    name: 'geo code',
    there: sketch(`${A} ${ONE} id=one geo=GEO-EU`),
    here: sketch(`${A} ${TWO} id=two geo=GEO-NA`),
  },
  {
    name: 'default',
    there: sketch(`${A} ${ONE} id=one geo=GEO-EU default=true`),
    here: sketch(`${A} ${TWO} id=two geo=GEO-NA`),
  },
  {
    name: 'location',
    there: sketch(`${A} ${ONE} id=one location=52.52+13.40`),
    here: sketch(`${A} ${TWO} id=two location=48.86+2.35`),
  },
  { name: 'TTL', there: sketch(`${A} ${ONE} ttl=30`), here: sketch(`${A} ${TWO} ttl=30`) },
  {
    name: 'set identifier',
    there: sketch(`${A} ${ONE} id=one weight=1`),
    here: sketch(`${A} ${ONE} id=two weight=1`),
  },
  {
    name: 'all-down',
    there: sketch(`${A} ${ONE}`, { ...annotated('all-down', 'closed'), down: [ONE] }),
    here: { ...two, down: [TWO] },
  },
  {
    name: 'sticky',
    there: sketch(`${A} ${ONE} id=one weight=20`, annotated('sticky', '16 48')),
    here: weighted,
  },
  {
    name: 'failover',
    there: sketch(`${A} ${ONE} id=one geo=GEO-EU`, {
      ...annotated('failover', 'GEO-EU: GEO-NA'),
      down: [ONE],
    }),
    here: { endpoints: [`${A} ${TWO} id=two geo=GEO-NA`, `${A} 192.0.2.3 id=three geo=*`] },
  },
  {
    name: 'shift',
    there: sketch(
      `${A} ${ONE} id=one weight=20`,
      annotated('shift', 'to=one steps=10%,100% bake=1h'),
    ),
    here: weighted,
  },
  { name: 'drain', there: sketch(`${A} ${ONE}`, annotated('drain', 'racks move')), here: two },
  {
    name: 'drain-until',
    there: sketch(`${A} ${ONE}`, {
      annotations: { 'sextant.io/drain': '', 'sextant.io/drain-until': '2020-01-01T00:00:00Z' },
    }),
    here: two,
  },
  { name: 'up', there: sketch(`${A} ${ONE}`, { up: [ONE] }), here: two },
  { name: 'down', there: sketch(`${A} ${ONE}`, { down: [ONE] }), here: two },
  {
    name: 'all down',
    there: sketch(`${A} ${ONE}`, { down: [ONE] }),
    here: { ...two, down: [TWO] },
  },
  {
    name: 'CNAME of a down address',
    there: {
      endpoints: [
        `app.k.example.com CNAME eu.app.k.example.com id=one geo=GEO-EU`,
        `eu.${A} ${ONE}`,
      ],
      down: [ONE],
    },
    here: {
      endpoints: [
        `app.k.example.com CNAME na.app.k.example.com id=two geo=GEO-NA`,
        `na.${A} ${TWO}`,
      ],
    },
  },
  ...[
    'zone:k.example.com',
    'host:app.k.example.com',
    'id:one',
    `address:${ONE}`,
    'geo:GEO-EU',
    'site:there',
    'record:a/app',
  ].map((selector) => ({
    name: `drain by ${selector}`,
    there: sketch(`${A} ${ONE} id=one geo=GEO-EU`),
    here: sketch(`${A} ${TWO} id=two geo=GEO-NA`),
    drains: [selector],
  })),
  {
    name: 'Namespace drain',
    there: sketch(`${A} ${ONE} id=one`),
    here: two,
    namespace: { 'sextant.io/drain': 'racks move' },
  },
  {
    name: 'CNAME beside A',
    there: sketch(`${A} ${ONE}`),
    here: sketch('app.k.example.com CNAME example.org'),
  },
  {
    name: 'different TTL',
    there: sketch(`${A} ${ONE} ttl=60`),
    here: sketch(`${A} ${TWO} ttl=30`),
  },
  {
    name: 'one set identifier',
    there: sketch(`${A} ${ONE} id=x`),
    here: sketch(`${A} ${TWO} id=x`),
  },
  {
    name: 'different sticky',
    there: sketch(`${A} ${ONE} id=one weight=20`, annotated('sticky', '16 48')),
    here: { ...weighted, ...annotated('sticky', '24 56') },
  },
  {
    name: 'different all-down',
    there: sketch(`${A} ${ONE}`, { ...annotated('all-down', 'closed'), down: [ONE] }),
    here: { ...two, ...annotated('all-down', 'open'), down: [TWO] },
  },
  {
    name: 'different failover',
    there: sketch(`${A} ${ONE} id=one geo=GEO-EU`, annotated('failover', 'GEO-EU: two')),
    here: sketch(`${A} ${TWO} id=two geo=GEO-NA`, annotated('failover', 'GEO-EU: GEO-NA')),
  },
  {
    name: 'different shift',
    there: sketch(`${A} ${ONE} id=one weight=20`, annotated('shift', 'to=one steps=10% bake=1h')),
    here: { ...weighted, ...annotated('shift', 'to=two steps=10% bake=1h') },
  },
]
