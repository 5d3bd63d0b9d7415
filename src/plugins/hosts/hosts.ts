import { Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import type { Query } from '../../dns/message/query.ts'
import type { Response } from '../../dns/message/response.ts'
import { Section } from '../../dns/message/section.ts'
import type { Fallthrough } from '../../plugin/arguments/fallthrough.ts'
import type { Handler } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import type { ZoneSet } from '../../zone/lookup/zone-set.ts'
import { findNode } from '../../zone/zonefile/node-index.ts'
import type { RecordsInSharedMemory } from '../../zone/zonefile/records-in-shared-memory.ts'

const ASTERISK = 0x2a

/** The records that `Hosts` answers from; one assignment replaces them when the file changes. */
interface HostsSource {
  /** Undefined until the records are loaded. */
  readonly records: RecordsInSharedMemory | undefined
}

interface HostsServing {
  readonly zones: ZoneSet
  readonly fallthrough: Fallthrough
  /** Applies `fallthrough` also if the name exists, but the type is not supported. */
  readonly fallthroughUnsupported: boolean
}

/** Answers A, AAAA and PTR from a hosts file. */
export class Hosts implements Handler {
  readonly name = 'hosts'
  readonly #next: Handler
  readonly #source: HostsSource
  readonly #serving: HostsServing
  /** The wildcard that could match the qname. */
  readonly #wildcard = new Uint8Array(256)

  constructor(next: Handler, source: HostsSource, serving: HostsServing) {
    this.#next = next
    this.#source = source
    this.#serving = serving
  }

  serve(tx: Transaction): number | Promise<number> {
    const { query, response } = tx
    if (query.qclass !== RRClass.IN) return this.#next.serve(tx)
    const { records } = this.#source
    if (records === undefined) return this.#next.serve(tx)
    if (query.qtype === RRType.PTR) {
      // Reverse zones need not be configured. Another plugin may have a PTR that is missing here.
      const node = findNode(records, query.qname, query.qnameOctets)
      return addAll(records, node, query, response) === 0
        ? this.#next.serve(tx)
        : this.#answered(tx)
    }
    if (this.#serving.zones.match(query) === -1) return this.#next.serve(tx)
    const node = this.#findHost(records, query)
    if (node === -1) {
      if (this.#serving.fallthrough.through(query)) return this.#next.serve(tx)
      // NXDOMAIN would need a SOA, which a hosts file does not have.
      response.error = 'no such host, and no fallthrough'
      return Rcode.SERVFAIL
    }
    if (!isHostType(query.qtype) && this.#passesUnsupported(query)) return this.#next.serve(tx)
    addAll(records, node, query, response)
    return this.#answered(tx)
  }

  #passesUnsupported(query: Query): boolean {
    return this.#serving.fallthroughUnsupported && this.#serving.fallthrough.through(query)
  }

  #answered(tx: Transaction): number {
    tx.response.authoritative = true
    tx.response.rcode = Rcode.NOERROR
    tx.response.answeredBy = this.name
    return Rcode.NOERROR
  }

  /** Index of the qname's node or else of the wildcard one label above; -1 if neither exists. */
  #findHost(records: RecordsInSharedMemory, query: Query): number {
    const node = findNode(records, query.qname, query.qnameOctets)
    if (node !== -1 || query.labelCount === 0) return node
    const rest = query.labelOffset[1]!
    const wildcard = this.#wildcard
    wildcard[0] = 1
    wildcard[1] = ASTERISK
    for (let i = rest; i < query.qnameOctets; i++) wildcard[2 + i - rest] = query.qname[i]!
    return findNode(records, wildcard, 2 + query.qnameOctets - rest)
  }
}

function isHostType(qtype: number): boolean {
  return qtype === RRType.A || qtype === RRType.AAAA
}

/** Adds the node's records of the queried type, and returns their number. */
function addAll(
  records: RecordsInSharedMemory,
  node: number,
  query: Query,
  response: Response,
): number {
  if (node === -1) return 0
  const { qname, qtype } = query
  const before = response.count
  for (let i = records.firstRecord[node]!; i !== -1; i = records.nextRecord[i]!) {
    if (records.type[i] !== qtype) continue
    const ttlSeconds = records.ttlSeconds[i]!
    const offset = records.rdataOffset[i]!
    const octets = records.rdataOctets[i]!
    const { octets: bytes } = records
    response.add(Section.Answer, qname, 0, qtype, RRClass.IN, ttlSeconds, bytes, offset, octets)
  }
  return response.count - before
}
