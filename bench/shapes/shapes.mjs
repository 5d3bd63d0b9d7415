// The shapes of queries, and the zones that answer them.
import { GEO_NAME, GEO_ZONE, PLAIN_ZONE, simpleName } from '../peers/content.mjs'

const NAMES = 1000
/** More names than any cache of a server holds. */
const RANDOM_NAMES = 65_536

/** The host of a DNSPolicy of Kuadrant: CNAME, CNAME by GEO, CNAME by weight, A. */
export const CHAIN_HOST = `shop.${GEO_ZONE}`

/** Hosts with eight endpoints that have weights: one in the answer, and `ANSWERS` of them. */
export const ONE_HOST = `one.${GEO_ZONE}`
export const SEVERAL_HOST = `several.${GEO_ZONE}`
export const ANSWERS = 3

const each = (text) => Array.from({ length: NAMES }, (_, i) => `${simpleName(i)} ${text}`)
const random = (below) => {
  const name = () => Math.random().toString(36).slice(2, 12)
  return Array.from({ length: RANDOM_NAMES }, () => `${name()}.${below} A`)
}

/** `rcode`: of the replies. `lines`: the questions. `form`: options of the queries (bench/peers/generator.mjs). */
export const SHAPES = {
  plain: { title: 'plain A', lines: () => each('A') },
  cookie: { title: 'plain A, cookie', lines: () => each('A'), form: 'cookie' },
  geo: { title: 'GEO + weight, ECS', lines: () => [`${GEO_NAME} A`], form: 'ecs' },
  'geo-cookie': {
    title: 'GEO + weight, ECS, cookie',
    lines: () => [`${GEO_NAME} A`],
    form: 'ecs,cookie',
  },
  chain: {
    title: 'CNAME chain of 4, GEO, weight, ECS',
    lines: () => [`${CHAIN_HOST} A`],
    form: 'ecs',
  },
  one: { title: 'weight, one of 8', lines: () => [`${ONE_HOST} A`] },
  several: { title: `weight, answers ${ANSWERS} of 8`, lines: () => [`${SEVERAL_HOST} A`] },
  nodata: { title: 'NODATA', lines: () => each('AAAA') },
  nxdomain: { title: 'NXDOMAIN, random names', lines: () => random(PLAIN_ZONE), rcode: 3 },
  wildcard: { title: 'wildcard, random names', lines: () => random(`wild.${PLAIN_ZONE}`) },
  soa: { title: 'SOA', lines: () => [`${PLAIN_ZONE} SOA`] },
  ns: { title: 'NS', lines: () => [`${PLAIN_ZONE} NS`] },
  refused: { title: 'REFUSED', lines: () => random('elsewhere.example'), rcode: 5 },
}

/** Lines of a master file for the plain shapes, in addition to SOA, NS and names (`masterFile`). */
export function* plainZoneLines(plainLines) {
  yield* plainLines(NAMES)
  yield '*.wild 300 IN A 192.0.2.9\n'
}
