import { RRType } from '../../dns/iana/types.ts'
import { ALIAS_TYPE, type Endpoint } from '../../records/dns-record.ts'
import { printTarget } from '../../records/print-endpoint.ts'
import { type Generation, type PeerEndpoint, printTargets } from '../peer-endpoint.ts'

/** JSON syntax around the values of an endpoint, and its health and age. */
const FRAME_OCTETS = 320
const TARGET_FRAME_OCTETS = 3
/** A property with coordinates, at most. */
const LOCATION_OCTETS = 64
const IPV4_CHARACTERS_MAX = 15
const IPV6_CHARACTERS_MAX = 39
/** Worst case: a character is written as `\u003c`. */
const CHARACTER_OCTETS_MAX = 6
/** The API server escapes these characters in stored objects, in addition to what JSON escapes. */
const ESCAPED_BY_API = /[<>&\u2028\u2029]/g

/** Returns an upper bound of `endpointOctets` with less work. */
export function endpointOctetsAtMost({ endpoint }: PeerEndpoint): number {
  const { owner, type, rdata } = endpoint
  let characters = owner.length + endpoint.setIdentifier.length
  for (const target of rdata) characters += 2 * charactersAtMost(type, target) + TARGET_FRAME_OCTETS
  for (const code of endpoint.codes) characters += code.text.length + 1
  return FRAME_OCTETS + locationOctets(endpoint) + CHARACTER_OCTETS_MAX * characters
}

/** Returns an upper bound of the characters of a target, without printing an address or a name. */
function charactersAtMost(type: number, rdata: Uint8Array): number {
  switch (type) {
    case RRType.A:
      return IPV4_CHARACTERS_MAX
    case RRType.AAAA:
      return IPV6_CHARACTERS_MAX
    case RRType.CNAME:
    case ALIAS_TYPE:
    case RRType.NS:
    case RRType.PTR:
      return rdata.length
    default:
      return printTarget(type, rdata).length
  }
}

/**
 * Returns the octets of an endpoint as JSON in the spec or status of a DNSRecord, at least. They do
 * not depend on its health or age. An endpoint of a v1 peer may get its targets as its set
 * identifier.
 */
export function endpointOctets({ endpoint }: PeerEndpoint, generation: Generation): number {
  const { dnsName, targets } = printTargets(endpoint)
  const texts = [dnsName, endpoint.setIdentifier, ...endpoint.codes.map(({ text }) => text)]
  const targetOctets = targets.reduce(
    (sum, target) => sum + jsonOctets(target) + TARGET_FRAME_OCTETS,
    0,
  )
  const named = generation === 'v1' ? 2 * targetOctets : targetOctets
  const framed = FRAME_OCTETS + locationOctets(endpoint) + named
  return texts.reduce((sum, text) => sum + jsonOctets(text), framed)
}

function locationOctets({ point }: Endpoint): number {
  return point === undefined ? 0 : LOCATION_OCTETS
}

/** Returns the octets of a value as the API server stores it. */
export function jsonOctets(value: unknown): number {
  const text = JSON.stringify(value) ?? ''
  const escaped = text.match(ESCAPED_BY_API)?.length ?? 0
  return Buffer.byteLength(text) + (CHARACTER_OCTETS_MAX - 1) * escaped
}
