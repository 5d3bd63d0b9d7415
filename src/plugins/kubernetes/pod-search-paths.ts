import type { ServedImage } from '../../authority/cluster/cluster-handler.ts'
import { dashedAddress } from '../../authority/cluster/names.ts'
import type { Query } from '../../dns/message/query.ts'
import { NameBuffer } from '../../dns/name/hashed-name.ts'
import type { Address } from '../../dns/text/address.ts'
import type { SearchPaths } from '../../plugin/search-paths.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import type { ZoneSet } from '../../zone/lookup/zone-set.ts'

/** `svc` and `pod` as labels. */
const SVC = Uint8Array.of(3, 0x73, 0x76, 0x63)
const POD = Uint8Array.of(3, 0x70, 0x6f, 0x64)
const NAME_OCTETS_MAX = 255

/**
 * The search path of a Pod: NAMESPACE.svc.ZONE, svc.ZONE, ZONE, then `host`. A query is from a Pod in the
 * namespace of its name if the image has the name of that Pod (`pods verified`).
 */
export class PodSearchPaths implements SearchPaths {
  readonly reason: string
  /** The domains that Pods append after those of the cluster: the search path of their nodes, then the root. */
  host: readonly Uint8Array[] = [Uint8Array.of(0)]
  readonly #image: ServedImage
  readonly #zones: ZoneSet
  readonly #name = new NameBuffer()
  readonly #octets = new Uint8Array(NAME_OCTETS_MAX)

  constructor(image: ServedImage, zones: ZoneSet, isVerified: boolean) {
    this.#image = image
    this.#zones = zones
    this.reason = isVerified ? '' : 'kubernetes needs `pods verified`'
  }

  find({ query }: Transaction): readonly Uint8Array[] | undefined {
    if (this.reason !== '') return undefined
    const index = this.#zones.match(query)
    if (index === -1) return undefined
    const { labelOffset, qname, qnameOctets } = query
    const apex = this.#zones.zones[index]!
    const svc = labelAbove(query, apex)
    if (svc < 2 || !hasLabel(query, svc, SVC)) return undefined
    const namespaceAt = labelOffset[svc - 1]!
    const svcAt = labelOffset[svc]!
    if (!this.#isPodIn(query, namespaceAt, svcAt, apex)) return undefined
    const name = qname.slice(0, qnameOctets)
    const own = [namespaceAt, svcAt, qnameOctets - apex.length].map((at) => name.subarray(at))
    return [...own, ...this.host]
  }

  /** Whether the client is a Pod in the namespace whose label is at `start`..`end` of the name. */
  #isPodIn(query: Query, start: number, end: number, apex: Uint8Array): boolean {
    const { answerer } = this.#image
    if (answerer === undefined) return false
    const label = dashedAddress(clientOf(query))
    const octets = 1 + label.length + (end - start) + POD.length + apex.length
    if (octets > NAME_OCTETS_MAX) return false
    this.#octets[0] = label.length
    for (let i = 0; i < label.length; i++) this.#octets[i + 1] = label.charCodeAt(i)
    let at = label.length + 1
    this.#octets.set(query.qname.subarray(start, end), at)
    at += end - start
    this.#octets.set(POD, at)
    this.#octets.set(apex, at + POD.length)
    const name = this.#name
    if (!name.set(this.#octets, 0, octets)) return false
    const { reader } = answerer
    reader.refresh()
    const zone = reader.matchZone(name, 0)
    return zone !== 0 && reader.findBody(zone, name, 0, reader.zoneLabel) !== 0
  }
}

function clientOf({ peerAddress, peerFamily }: Query): Address {
  return peerFamily === 1
    ? { family: 1, bytes: peerAddress.subarray(0, 4) }
    : { family: 2, bytes: peerAddress }
}

/** Returns the number of the label before the apex; -1 = the name is the apex. */
function labelAbove({ labelOffset, labelCount, qnameOctets }: Query, apex: Uint8Array): number {
  let label = labelCount
  while (qnameOctets - labelOffset[label]! < apex.length) label--
  return label - 1
}

function hasLabel({ qname, labelOffset }: Query, label: number, octets: Uint8Array): boolean {
  const at = labelOffset[label]!
  for (let i = 0; i < octets.length; i++) if (qname[at + i] !== octets[i]) return false
  return true
}
