// The shapes of queries, and the zones that answer them.
import { GEO_NAME, GEO_ZONE, PLAIN_ZONE, SIGNED_GEO_NAME, simpleName } from '../peers/content.mjs'

const NAMES = 1000
/** The plain zone, signed with NSEC and with NSEC3. */
export const SIGNED_ZONES = { 'signed.example': 'nsec', 'hashed.example': 'nsec3' }
const [SIGNED, HASHED] = Object.keys(SIGNED_ZONES)
/** More names than any cache of a server holds. */
const RANDOM_NAMES = 65_536

/** The host of a DNSPolicy of Kuadrant: CNAME, CNAME by GEO, CNAME by weight, A. */
export const CHAIN_HOST = `shop.${GEO_ZONE}`

/** Hosts with eight endpoints that have weights: one in the answer, and `ANSWERS` of them. */
export const ONE_HOST = `one.${GEO_ZONE}`
export const SEVERAL_HOST = `several.${GEO_ZONE}`
export const ANSWERS = 3

const each = (text) => Array.from({ length: NAMES }, (_, i) => `${simpleName(i)} ${text}`)
const eachIn = (label, zone, type) => () =>
  Array.from({ length: NAMES }, (_, i) => `${label}${i}.${zone} ${type}`)
const random = (below) => {
  const name = () => Math.random().toString(36).slice(2, 12)
  return Array.from({ length: RANDOM_NAMES }, () => `${name()}.${below} A`)
}

/** Each gets two shapes: without DO, and with it. */
const signed = {
  signed: { title: 'signed zone, plain A', lines: eachIn('n', SIGNED, 'A') },
  'signed-geo': {
    title: 'signed by the server, GEO + weight, ECS',
    lines: () => [`${SIGNED_GEO_NAME} A`],
    form: 'ecs',
  },
  'signed-alias': { title: 'signed zone, CNAME chain of 2', lines: eachIn('c', SIGNED, 'A') },
  'signed-nodata': { title: 'signed zone, NODATA', lines: eachIn('n', SIGNED, 'AAAA') },
  'signed-nxdomain': { title: 'signed zone, NXDOMAIN', lines: () => random(SIGNED), rcode: 3 },
  'signed-wildcard': { title: 'signed zone, wildcard', lines: () => random(`wild.${SIGNED}`) },
  'signed-secure': { title: 'signed zone, referral with DS', lines: eachIn('w.d', SIGNED, 'A') },
  'signed-insecure': {
    title: 'signed zone, referral without DS',
    lines: eachIn('w.u', SIGNED, 'A'),
  },
  'signed-key': { title: 'signed zone, DNSKEY', lines: () => [`${SIGNED} DNSKEY`] },
  'hashed-nodata': { title: 'NSEC3, NODATA', lines: eachIn('n', HASHED, 'AAAA') },
  'hashed-nxdomain': { title: 'NSEC3, NXDOMAIN', lines: () => random(HASHED), rcode: 3 },
}

const withDo = ([name, { form, ...shape }]) => [
  [name, { ...shape, form: form ?? 'edns' }],
  [
    `${name}-do`,
    {
      ...shape,
      title: `${shape.title}, DO`,
      form: form === undefined ? 'do' : `do,${form}`,
      without: name,
    },
  ],
]

/**
 * `rcode`: of the replies. `lines`: the questions. `form`: options of the queries (bench/peers/generator.mjs).
 * `without`: the shape whose rate is compared with this one's.
 */
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
  ...Object.fromEntries(Object.entries(signed).flatMap(withDo)),
}

/** Names of the shapes of signed zones. */
export const DNSSEC_SHAPES = Object.keys(SHAPES).filter((name) => /^(signed|hashed)/.test(name))

/** Lines of a master file for the plain shapes, in addition to SOA, NS and names (`masterFile`). */
export function* plainZoneLines(plainLines) {
  yield* plainLines(NAMES)
  yield '*.wild 300 IN A 192.0.2.9\n'
}

/** The same of the signed zones before they are signed. `d0`… are signed zones, `u0`… are not. */
export function* unsignedZoneLines(plainLines) {
  yield* plainZoneLines(plainLines)
  for (let i = 0; i < NAMES; i++) {
    yield `c${i} 300 IN CNAME b${i}\nb${i} 300 IN CNAME n${i}\n`
    yield `d${i} 300 IN NS ns.d${i}\nns.d${i} 300 IN A 192.0.2.54\n`
    yield `d${i} 300 IN DS 12345 13 2 ${'5a'.repeat(32)}\n`
    yield `u${i} 300 IN NS ns.u${i}\nns.u${i} 300 IN A 192.0.2.55\n`
  }
}
