import { RRClass } from '../../dns/iana/classes.ts'
import { Rcode } from '../../dns/iana/rcodes.ts'
import { RRType } from '../../dns/iana/types.ts'
import { Protocol, type Query } from '../../dns/message/query.ts'
import { Section } from '../../dns/message/section.ts'
import { type Cidr, isInNetwork } from '../../dns/text/address.ts'
import { type AnswerExplainer, explainedName } from '../../plugin/answer-explainer.ts'
import { type Handler, Link, PASS, Trait } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'

const TTL_SECONDS = 0
/** Most octets of a character-string (RFC 1035 section 3.3). */
const TEXT_OCTETS_MAX = 255
/** Most lines of one reply. */
const LINES_MAX = 200

/**
 * Answers TXT queries for `_explain.NAME`: why the client gets its answer for the A records of NAME.
 * Only clients in `networks` get an answer; for all others the name has no special meaning. Over UDP
 * the reply only asks to retry over TCP, because it is long and the source may be spoofed.
 */
export class ExplainNames extends Link {
  readonly name = 'kuadrant'
  readonly #networks: readonly Cidr[]
  readonly #explainer: () => AnswerExplainer | 'not open' | 'elsewhere'

  /** `explainer` returns 'elsewhere' in all threads but the control thread, which serves TCP. */
  constructor(
    next: Handler,
    networks: readonly Cidr[],
    explainer: () => AnswerExplainer | 'not open' | 'elsewhere',
  ) {
    super(next, Trait.Every, 0)
    this.#networks = networks
    this.#explainer = explainer
  }

  /** @hot */
  override before(tx: Transaction): number {
    const { query } = tx
    if (query.qtype !== RRType.TXT || query.qclass !== RRClass.IN) return PASS
    const name = explainedName(query.qname, query.qnameOctets)
    return name !== undefined && this.#allows(query) ? this.#answer(tx, name) : PASS
  }

  #allows({ peerAddress, peerFamily }: Query): boolean {
    return this.#networks.some((network) => {
      return network.family === peerFamily && isInNetwork(peerAddress, network)
    })
  }

  #answer(tx: Transaction, name: Uint8Array): number {
    const { query, response } = tx
    if (query.protocol === Protocol.Udp) {
      response.authoritative = true
      response.answeredBy = this.name
      response.truncated = true
      return Rcode.NOERROR
    }
    const explainer = this.#explainer()
    if (explainer === 'elsewhere') return tx.server.handOver(this.name)
    if (explainer === 'not open') {
      response.error = 'the server cannot explain answers yet'
      return Rcode.SERVFAIL
    }
    response.authoritative = true
    response.answeredBy = this.name
    const lines = explainer.lines(tx, name, RRType.A).slice(0, LINES_MAX)
    for (const [i, line] of lines.entries()) {
      // Resolvers do not keep the order of records.
      const rdata = composeText(`${String(i + 1).padStart(3, '0')} ${line}`)
      const octets = rdata.length
      response.add(
        Section.Answer,
        query.qname,
        0,
        RRType.TXT,
        RRClass.IN,
        TTL_SECONDS,
        rdata,
        0,
        octets,
      )
    }
    return Rcode.NOERROR
  }
}

/** Returns TXT rdata with the text in as many character-strings as it needs. */
function composeText(text: string): Uint8Array {
  const octets = Buffer.from(text)
  const parts: Buffer[] = []
  for (let at = 0; at < octets.length; at += TEXT_OCTETS_MAX) {
    const part = octets.subarray(at, at + TEXT_OCTETS_MAX)
    parts.push(Buffer.from([part.length]), part)
  }
  return Buffer.concat(parts)
}
