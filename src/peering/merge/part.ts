import type { Generation, PeerEndpoint } from '../peer-endpoint.ts'

/** An endpoint as input of a merge. */
export interface Part {
  readonly endpoint: PeerEndpoint
  readonly generation: Generation
  /** Address of the peer that reported it; '' = our own. */
  readonly exporter: string
}

/** True for a part that no peer reported: it is this site's own. */
export function isOurs({ exporter }: Part): boolean {
  return exporter === ''
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

/**
 * The order of precedence of parts: our own first, then v2 before v1, then by site, then by content. For parts of peers
 * it is the same at every site.
 */
export function compareParts(a: Part, b: Part): number {
  if (isOurs(a) !== isOurs(b)) return isOurs(a) ? -1 : 1
  if (a.generation !== b.generation) return a.generation === 'v2' ? -1 : 1
  if (a.endpoint.site !== b.endpoint.site) return a.endpoint.site < b.endpoint.site ? -1 : 1
  const [textA, textB] = [textOf(a.endpoint), textOf(b.endpoint)]
  if (textA === textB) return 0
  return textA < textB ? -1 : 1
}

/** The order for parts that contradict each other: a peer's that is down takes nothing from others. */
export function compareInService(a: Part, b: Part): number {
  const isLast = (part: Part): boolean => part.endpoint.health === 'down' && !isOurs(part)
  if (isLast(a) !== isLast(b)) return isLast(a) ? 1 : -1
  return compareParts(a, b)
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
