import type { ColumnName, Sketch } from './columns.ts'
import { HOST } from './nameserver.ts'

/** In place of a conflict of other columns, there is none. */
export const NOTHING = /^$/

/** What a column gives instead. */
export interface Refusal {
  /** What the sites serve, by site; missing = as everywhere. */
  readonly served?: { readonly there?: string; readonly here?: string }
  /** The message about it. */
  readonly says: RegExp
}

export type Exceptions = { readonly [column in ColumnName]?: Refusal }

export const [ONE, TWO, THREE] = ['192.0.2.1', '192.0.2.2', '192.0.2.3']
export const A = `${HOST} A`

export const sketch = (endpoint: string, more: Partial<Sketch> = {}): Sketch => {
  return { endpoints: [endpoint], ...more }
}
export const set = (name: string, value: string) => ({
  annotations: { [`sextant.io/${name}`]: value },
})

export const PLAIN_ONE = sketch(`${A} ${ONE}`)
export const PLAIN_TWO = sketch(`${A} ${TWO}`)
export const LIGHT = `${A} ${ONE} id=one weight=20`
export const HEAVY = sketch(`${A} ${TWO} id=two weight=80`)
export const EUROPE = sketch(`${A} ${ONE} id=one geo=GEO-EU`)
export const AMERICA = sketch(`${A} ${TWO} id=two geo=GEO-NA`)

export const CNAME_EUROPE: Sketch = {
  endpoints: [`${HOST} CNAME geo-eu.${HOST} id=one geo=GEO-EU`, `geo-eu.${A} ${ONE}`],
}
export const CNAME_AMERICA: Sketch = {
  endpoints: [`${HOST} CNAME geo-na.${HOST} id=two geo=GEO-NA`, `geo-na.${A} ${TWO}`],
}
export const BELOW = `geo-eu.app A ttl=60 *: ${ONE}; geo-na.app A ttl=60 *: ${TWO}`

export const BOTH = `app A ttl=60 *: ${ONE}+${TWO}`
export const SHARED = `app A ttl=60 *: ${ONE} (20) ${TWO} (80)`
export const BY_CODE = `app A ttl=60 GEO-EU: ${ONE} GEO-NA: ${TWO} *: ${ONE}+${TWO}`
export const ONLY_AMERICA = `app A ttl=60 GEO-NA: ${TWO} *: ${TWO}`

/** By v1, each site knows the set identifiers, annotations and codes of its own records only. */
export const V1 =
  /v1 does not carry set identifiers, defaults, locations, annotations, drains, health and where it is probed/
export const FROM_V1 = (there: string, here: string): Exceptions => {
  return { 'v1 peer': { served: { there, here }, says: V1 } }
}
export const V1_CODES = FROM_V1(
  `app A ttl=60 GEO-EU: ${ONE} *: ${ONE}+${TWO}`,
  `app A ttl=60 GEO-NA: ${TWO} *: ${ONE}+${TWO}`,
)

/** A site never leaves out its last endpoints of a name by v1. The other one may find itself that they are down. */
export const V1_LAST = FROM_V1(`app A ttl=60 *: ${TWO}`, BOTH)
