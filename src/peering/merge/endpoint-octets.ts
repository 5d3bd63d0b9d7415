import type { Generation, PeerEndpoint } from '../peer-endpoint.ts'

/** What JSON has around the values of an endpoint, and what is said of its health and age. */
const FRAME_OCTETS = 320
const TARGET_FRAME_OCTETS = 3
/** A character is written as `\u003c` at worst. */
const CHARACTER_OCTETS_MAX = 6
/** Besides what JSON escapes, the API server escapes these in what it stores. */
const ESCAPED_BY_API = /[<>&\u2028\u2029]/g

/** At least as many octets as `endpointOctets`, with less work. */
export function endpointOctetsAtMost(endpoint: PeerEndpoint): number {
  let characters = endpoint.dnsName.length + endpoint.setIdentifier.length
  for (const target of endpoint.targets) characters += 2 * target.length + TARGET_FRAME_OCTETS
  for (const code of endpoint.geoCodes) characters += code.length + 1
  return FRAME_OCTETS + CHARACTER_OCTETS_MAX * characters
}

/**
 * Octets that an endpoint has as JSON in the spec or status of a DNSRecord, at least. They don't change with its
 * health or age. A v1 peer's may get its targets for a set identifier.
 */
export function endpointOctets(endpoint: PeerEndpoint, generation: Generation): number {
  const { dnsName, setIdentifier, geoCodes, targets } = endpoint
  const texts = [dnsName, setIdentifier, ...geoCodes]
  const targetOctets = targets.reduce(
    (sum, target) => sum + jsonOctets(target) + TARGET_FRAME_OCTETS,
    0,
  )
  const named = generation === 'v1' ? 2 * targetOctets : targetOctets
  return texts.reduce((sum, text) => sum + jsonOctets(text), FRAME_OCTETS + named)
}

/** Octets of a value as the API server stores it. */
export function jsonOctets(value: unknown): number {
  const text = JSON.stringify(value) ?? ''
  const escaped = text.match(ESCAPED_BY_API)?.length ?? 0
  return Buffer.byteLength(text) + (CHARACTER_OCTETS_MAX - 1) * escaped
}
