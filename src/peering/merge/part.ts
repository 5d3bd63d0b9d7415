import type { Generation, PeerEndpoint } from '../peer-endpoint.ts'

/** An endpoint that a peer reported. */
export interface Part {
  readonly endpoint: PeerEndpoint
  readonly generation: Generation
  /** Address of the peer. */
  readonly exporter: string
}

/** Separates name and type in a key: neither contains blanks. */
const SEPARATOR = ' '

/** Map key of the RRset that an endpoint belongs to. */
export function setKey({ dnsName, recordType }: Pick<PeerEndpoint, 'dnsName' | 'recordType'>) {
  return `${dnsName}${SEPARATOR}${recordType}`
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
  const [textA, textB] = [textOf(a.endpoint), textOf(b.endpoint)]
  if (textA === textB) return 0
  return textA < textB ? -1 : 1
}

/**
 * Texts of endpoints. A sort compares each endpoint many times, and a peer's endpoint can be long.
 */
const texts = new WeakMap<PeerEndpoint, string>()

function textOf(endpoint: PeerEndpoint): string {
  const known = texts.get(endpoint)
  if (known !== undefined) return known
  const text = JSON.stringify(endpoint)
  texts.set(endpoint, text)
  return text
}
