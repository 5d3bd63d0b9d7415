import { isProof } from '../../dns/message/response.ts'
import { Section } from '../../dns/message/section.ts'
import { type Handler, Link, Trait } from '../../plugin/handler.ts'
import { ResponseKind, responseKind } from '../../plugin/status.ts'
import type { Transaction } from '../../plugin/transaction.ts'

/** Removes the authority and additional sections from positive answers of the plugins below. */
export class Minimal extends Link {
  readonly name = 'minimal'

  constructor(next: Handler) {
    super(next, 0, Trait.Extra)
  }

  override after(tx: Transaction, status: number): number {
    // Denials need their SOA, and delegations their NS and glue.
    if (responseKind(tx, status) === ResponseKind.Answer) keepAnswers(tx)
    return status
  }
}

/**
 * Answers from wildcards, and at the end of a CNAME chain, need their proofs as well (RFC 4035
 * section 3.1.3.3).
 */
function keepAnswers({ query, response }: Transaction): void {
  let kept = 0
  for (let i = 0; i < response.count; i++) {
    const section = response.section[i]
    const isNeeded = query.dnssecOk && section === Section.Authority && isProof(response, i)
    if (section !== Section.Answer && !isNeeded) continue
    response.move(i, kept)
    kept++
  }
  response.count = kept
}
