import type { Endpoint } from '../../records/dns-record.ts'
import { lowerNameKey } from '../../records/validate/names.ts'
import { type Generation, type PeerEndpoint, peerEndpointKey } from '../peer-endpoint.ts'

/** An endpoint that a peer reported. */
export interface Part {
  readonly endpoint: PeerEndpoint
  readonly generation: Generation
  /** Address of the peer. */
  readonly exporter: string
}

/** Map key of the RRset that an endpoint belongs to. */
export function setKey({ owner, type }: Pick<Endpoint, 'owner' | 'type'>): string {
  return `${type} ${lowerNameKey(owner)}`
}

export function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  return groups
}

/** The order of precedence of parts: v2 before v1, then by site, then by content. It is the same at every site. */
export function compareParts(a: Part, b: Part): number {
  if (a.generation !== b.generation) return a.generation === 'v2' ? -1 : 1
  if (a.endpoint.site !== b.endpoint.site) return a.endpoint.site < b.endpoint.site ? -1 : 1
  const [keyA, keyB] = [keyOf(a.endpoint), keyOf(b.endpoint)]
  if (keyA === keyB) return 0
  return keyA < keyB ? -1 : 1
}

/** Content of endpoints. A sort compares each endpoint many times, and a peer's endpoint can be long. */
const keys = new WeakMap<PeerEndpoint, string>()

function keyOf(endpoint: PeerEndpoint): string {
  const known = keys.get(endpoint)
  if (known !== undefined) return known
  const key = peerEndpointKey(endpoint)
  keys.set(endpoint, key)
  return key
}
