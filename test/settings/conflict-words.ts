import type { ColumnName } from './columns.ts'

/** What messages of each source must say: `log`, or the type of a condition. */
type Words = { readonly [source: string]: RegExp }

export type ColumnWords = { readonly [column in ColumnName]?: Words }

/** What the log of a cluster's server and the conditions of the operator say of the same conflict. */
const inCluster = (log: RegExp, condition: RegExp, ready: Words = {}): ColumnWords => {
  const words = { log, EndpointsServed: condition, ...ready }
  return { 'own cluster': words, delegating: words }
}
export const CNAME_ALONE =
  /: CNAME .*beside A \(.*: the CNAME is (not )?served, because a CNAME must be alone; delete one of them$/
const NOT_ALONE =
  /a\/other is not served: a\/app, which takes precedence, has A 192.0.2.1, and a CNAME must be alone; delete one of the two$/
export const SAME_IDENTIFIER =
  /: set identifier "x" with targets .*: the first is served, because an identifier names one endpoint; give each endpoint its own identifier$/
const IDENTIFIER_TAKEN =
  /a\/other is not served: a\/app, which takes precedence, has A 192.0.2.1 with the same set identifier "x"; change one of the two$/
export const SAME_PLACE =
  /: set identifier "x" with location 52.52,13.40 .*and 48.86,2.35 .*: the first is served, because an identifier names one endpoint; give each endpoint its own identifier$/
const PLACE_TAKEN =
  /a\/other is not served: a\/app, which takes precedence, has location 52.52,13.40, not 48.86,2.35, with the same set identifier "x"; change one of the two$/
export const TOO_MANY =
  /: its 18 endpoints have more than 4096 targets or geo codes: 16 endpoints are served; remove some$/
const SOME_TOO_MANY =
  /a\/other is not served: the name has too many endpoints; remove some of them$/

const TYPE_TAKEN =
  /record type conflict, cannot update endpoint 'app.k.example.com' with record type 'CNAME' when endpoint already exists with record type 'A'$/

export const CNAME_WORDS: ColumnWords = {
  'own cluster': { log: CNAME_ALONE, EndpointsServed: NOT_ALONE, Ready: NOT_ALONE },
  delegating: { Ready: TYPE_TAKEN },
}
export const IDENTIFIER_WORDS = inCluster(SAME_IDENTIFIER, IDENTIFIER_TAKEN, {
  Ready: IDENTIFIER_TAKEN,
})
export const PLACE_WORDS = inCluster(SAME_PLACE, PLACE_TAKEN, { Ready: PLACE_TAKEN })
export const TARGETS_WORDS = inCluster(TOO_MANY, SOME_TOO_MANY)
