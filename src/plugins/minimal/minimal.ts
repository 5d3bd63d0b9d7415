import { isProof, type Response, Section } from '../../dns/message/response.ts'
import type { FastPathRole } from '../../plugin/fast-path.ts'
import type { Handler } from '../../plugin/handler.ts'
import { ResponseKind, responseKind } from '../../plugin/status.ts'
import type { Transaction } from '../../plugin/transaction.ts'

/** Removes the authority and additional sections from positive answers of the plugins below. */
export class Minimal implements Handler {
  readonly name = 'minimal'
  readonly plain: FastPathRole
  readonly #next: Handler

  constructor(next: Handler) {
    this.#next = next
    this.plain = { kind: 'pass', next }
  }

  serve(tx: Transaction): number | Promise<number> {
    const status = this.#next.serve(tx)
    if (typeof status === 'number') return finish(tx, status)
    return status.then((late) => finish(tx, late))
  }
}

function finish(tx: Transaction, status: number): number {
  // Denials need their SOA, and delegations their NS and glue.
  if (responseKind(tx, status) === ResponseKind.Answer) keepAnswers(tx)
  return status
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
    if (kept !== i) moveRecord(response, i, kept)
    kept++
  }
  response.count = kept
}

function moveRecord(response: Response, from: number, to: number): void {
  response.section[to] = response.section[from]!
  response.type[to] = response.type[from]!
  response.rrclass[to] = response.rrclass[from]!
  response.ttlSeconds[to] = response.ttlSeconds[from]!
  response.ownerBytes[to] = response.ownerBytes[from]!
  response.ownerOffset[to] = response.ownerOffset[from]!
  response.rdataBytes[to] = response.rdataBytes[from]!
  response.rdataOffset[to] = response.rdataOffset[from]!
  response.rdataOctets[to] = response.rdataOctets[from]!
}
