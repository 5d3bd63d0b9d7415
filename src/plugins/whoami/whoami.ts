import { Rcode, RRType } from '../../dns/iana/index.ts'
import { Protocol } from '../../dns/message/query.ts'
import { Section } from '../../dns/message/section.ts'
import type { Handler } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'

const TTL_SECONDS = 0
/** Priority, weight, port, and the root as target. */
const SRV_OCTETS = 7
const NAME_OCTETS_MAX = 255
const UDP_LABEL = new Uint8Array(Buffer.from('\x04_udp', 'latin1'))
const TCP_LABEL = new Uint8Array(Buffer.from('\x04_tcp', 'latin1'))

/** Octets of one transaction's records. They must not change until its reply is composed. */
interface Scratch {
  readonly owner: Uint8Array
  readonly srv: Uint8Array
}

/**
 * Answers any query with an empty answer section. The additional section has the client's address
 * (A or AAAA) and, as `_udp.` or `_tcp.` below the qname, a SRV record with its port.
 */
export class Whoami implements Handler {
  readonly name = 'whoami'
  /** Transactions are pooled: after the first query of each one, nothing is allocated. */
  readonly #scratch = new WeakMap<Transaction, Scratch>()

  serve(tx: Transaction): number {
    const { query, response } = tx
    response.authoritative = true
    response.imputedLabel = query.labelCount
    response.answeredBy = 'whoami'
    response.rcode = Rcode.NOERROR
    const isIPv4 = query.peerFamily === 1
    response.add(
      Section.Additional,
      query.qname,
      0,
      isIPv4 ? RRType.A : RRType.AAAA,
      query.qclass,
      TTL_SECONDS,
      query.peerAddress,
      0,
      isIPv4 ? 4 : 16,
    )
    // A name with no room for one more label has no SRV record.
    if (query.qnameOctets + UDP_LABEL.length <= NAME_OCTETS_MAX) this.#addPort(tx)
    return Rcode.NOERROR
  }

  #addPort(tx: Transaction): void {
    const { query } = tx
    const { owner, srv } = this.#scratchOf(tx)
    owner.set(query.protocol === Protocol.Udp ? UDP_LABEL : TCP_LABEL)
    for (let i = 0; i < query.qnameOctets; i++) owner[UDP_LABEL.length + i] = query.qname[i]!
    srv[4] = query.peerPort >>> 8
    srv[5] = query.peerPort & 0xff
    tx.response.add(
      Section.Additional,
      owner,
      0,
      RRType.SRV,
      query.qclass,
      TTL_SECONDS,
      srv,
      0,
      SRV_OCTETS,
    )
  }

  #scratchOf(tx: Transaction): Scratch {
    let scratch = this.#scratch.get(tx)
    if (scratch === undefined) {
      scratch = { owner: new Uint8Array(NAME_OCTETS_MAX), srv: new Uint8Array(SRV_OCTETS) }
      this.#scratch.set(tx, scratch)
    }
    return scratch
  }
}
