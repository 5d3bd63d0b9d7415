import { Rcode } from '../../dns/iana/rcodes.ts'
import { RRType } from '../../dns/iana/types.ts'
import { DROP, type Handler } from '../../plugin/handler.ts'
import { isUnwritten } from '../../plugin/status.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { RcodeChange } from './reply-changes.ts'
import { Rewriting } from './rewriting.ts'
import { type RewriteRule, RuleOutcome } from './rules.ts'

/** A rule with its place in the order. */
export interface OrderedRule {
  readonly rule: RewriteRule
  /** No later rule is applied if this one was. */
  readonly stops: boolean
}

/** Changes queries before the links below see them, and their replies. */
export class Rewrite implements Handler {
  readonly name = 'rewrite'
  readonly #next: Handler
  readonly #rules: readonly OrderedRule[]

  constructor(next: Handler, rules: readonly OrderedRule[]) {
    this.#next = next
    this.#rules = rules
  }

  serve(tx: Transaction): number | Promise<number> {
    const { query, response } = tx
    // A transfer continues after this call, with the query that it started with.
    if (query.qtype === RRType.AXFR || query.qtype === RRType.IXFR) return this.#next.serve(tx)
    const rewriting = new Rewriting(query)
    for (const { rule, stops } of this.#rules) {
      const outcome = rule.apply(tx, rewriting)
      if (outcome === RuleOutcome.Invalid) {
        rewriting.restore(tx)
        response.error = 'invalid name after rewrite'
        return Rcode.SERVFAIL
      }
      if (outcome === RuleOutcome.Done && stops) break
    }
    const status = this.#next.serve(tx)
    if (typeof status === 'number') return finish(tx, rewriting, status)
    return status.then(
      (late) => finish(tx, rewriting, late),
      (error: unknown) => {
        rewriting.restore(tx)
        throw error
      },
    )
  }
}

function finish(tx: Transaction, rewriting: Rewriting, status: number): number | Promise<number> {
  rewriting.restore(tx)
  if (status === DROP || rewriting.changes.length === 0) return status
  if (isUnwritten(status)) return changeError(tx, rewriting, status)
  const changed = changeReply(tx, rewriting, rewriting.changes.length - 1)
  return changed === undefined ? status : changed.then(() => status)
}

/** Changes the rcode of an error that no link wrote. It has no records. */
function changeError(tx: Transaction, rewriting: Rewriting, status: number): number {
  const { response } = tx
  const { rcode } = response
  response.rcode = status
  for (const change of rewriting.changes.toReversed()) {
    if (change instanceof RcodeChange) change.apply(tx)
  }
  const changed = response.rcode
  if (changed === status) {
    response.rcode = rcode
    return status
  }
  response.clear()
  response.sections = 0
  response.authoritative = false
  response.truncated = false
  return changed
}

/** Applies the changes from number `last` down to the first. */
function changeReply(
  tx: Transaction,
  rewriting: Rewriting,
  last: number,
): undefined | Promise<undefined> {
  for (let i = last; i >= 0; i--) {
    const waiting = rewriting.changes[i]!.apply(tx, rewriting)
    if (waiting !== undefined) return waiting.then(() => changeReply(tx, rewriting, i - 1))
  }
  return undefined
}
