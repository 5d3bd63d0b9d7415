import type { ServedImage } from '../../authority/cluster/cluster-handler.ts'
import { Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import { Section } from '../../dns/message/section.ts'
import type { HashedName } from '../../dns/name/hashed-name.ts'
import { type Address, scanIPv4, scanIPv6 } from '../../dns/text/address.ts'
import { type Handler, Link, PASS, Trait } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import * as L from '../../zone/image/layout.ts'
import type { ZoneReader } from '../../zone/image/reader.ts'
import { ZoneSet } from '../../zone/lookup/zone-set.ts'

/** `pod` as a label. */
const POD = Uint8Array.of(3, 0x70, 0x6f, 0x64)
/** Labels of ADDRESS.NAMESPACE.pod. */
const POD_LABELS = 3
/** Longest text of an IPv6 address. */
const LABEL_OCTETS_MAX = 45
/** Four numbers between dashes: an IPv4 address. */
const DASHED_QUAD = /^[^-]+(?:-[^-]+){3}$/

/**
 * Answers for `A-B-C-D.NAMESPACE.pod.ZONE` with the address in the name (`pods insecure`), if the
 * namespace exists. The image cannot list these names.
 */
export class PodNames extends Link {
  readonly name = 'kubernetes'
  readonly #image: ServedImage
  readonly #zones: ZoneSet
  readonly #ttlSeconds: number

  /** `zones`: those that are not reverse. */
  constructor(next: Handler, image: ServedImage, zones: readonly Uint8Array[], ttlSeconds: number) {
    super(next, Trait.Every, 0)
    this.#image = image
    this.#zones = new ZoneSet(zones)
    this.#ttlSeconds = ttlSeconds
  }

  /** @hot */
  override before(tx: Transaction): number {
    const { query } = tx
    if (query.labelCount <= POD_LABELS || !isPodLabel(query)) return PASS
    const index = this.#zones.match(query)
    const { answerer } = this.#image
    if (index === -1 || answerer === undefined || query.qclass !== RRClass.IN) return PASS
    const podOffset = query.labelOffset[POD_LABELS - 1]!
    const apex = this.#zones.zones[index]!
    if (query.qnameOctets - podOffset !== POD.length + apex.length) return PASS
    const { reader } = answerer
    reader.refresh()
    const zone = reader.matchZone(query, 0)
    const isNamespace = zone !== 0 && reader.findBody(zone, query, 1, reader.zoneLabel) !== 0
    const address = isNamespace ? addressOf(query) : undefined
    return address === undefined ? PASS : this.#answer(tx, address, reader, zone)
  }

  #answer(tx: Transaction, address: Address, reader: ZoneReader, zone: number): number {
    const { query, response } = tx
    const type = address.family === 1 ? RRType.A : RRType.AAAA
    const { bytes } = address
    const ttl = this.#ttlSeconds
    if (query.qtype === type || query.qtype === RRType.ANY) {
      const octets = bytes.length
      response.add(Section.Answer, query.qname, 0, type, RRClass.IN, ttl, bytes, 0, octets)
    } else addSoa(tx, reader, zone)
    // A client can invent any number of these names.
    response.imputedLabel = 1
    response.authoritative = true
    response.answeredBy = this.name
    response.rcode = Rcode.NOERROR
    return Rcode.NOERROR
  }
}

/** Adds the SOA of a negative answer. */
function addSoa({ query, response }: Transaction, reader: ZoneReader, zone: number): void {
  const { words, bytes } = reader
  const soa = reader.findRRset(reader.visibleBody(words[zone + L.ZONE_APEX_NODE]!), RRType.SOA)
  if (soa === 0) return
  const at = reader.rdataStart(soa)
  const octets = (bytes[at]! << 8) | bytes[at + 1]!
  const apexAt = query.labelOffset[reader.zoneLabel]!
  const ttl = words[soa + L.RRSET_TTL]!
  const { Authority } = Section
  response.add(Authority, query.qname, apexAt, RRType.SOA, RRClass.IN, ttl, bytes, at + 2, octets)
}

/** True if the third label is `pod`. */
function isPodLabel({ qname, labelOffset }: HashedName): boolean {
  const at = labelOffset[POD_LABELS - 1]!
  for (let i = 0; i < POD.length; i++) if (qname[at + i] !== POD[i]) return false
  return true
}

/** Returns the address that the first label stands for; undefined = none. */
function addressOf({ qname }: HashedName): Address | undefined {
  const octets = qname[0]!
  if (octets > LABEL_OCTETS_MAX) return undefined
  let label = ''
  for (let i = 1; i <= octets; i++) label += String.fromCharCode(qname[i]!)
  if (DASHED_QUAD.test(label)) return scanIPv4(label.replaceAll('-', '.'))
  return scanIPv6(label.replaceAll('-', ':'))
}
