import { copyOctets } from '../../base/octets.ts'
import type { Query } from '../../dns/message/query.ts'
import { maskAddress } from '../../dns/text/address.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import type { NameChange } from './names.ts'
import { AutoChange } from './reply-changes.ts'
import type { ReplyChange, Rewriting } from './rewriting.ts'

/** Results of `RewriteRule.apply`. */
export const RuleOutcome = {
  /** The rule does not concern the query. */
  Ignored: 0,
  Done: 1,
  /** The new name of the query is invalid. */
  Invalid: 2,
} as const
export type RuleOutcome = (typeof RuleOutcome)[keyof typeof RuleOutcome]

/** One rule of the Corefile. */
export interface RewriteRule {
  /** Changes the query, or notes changes of the reply. */
  apply(tx: Transaction, rewriting: Rewriting): RuleOutcome
}

/** `name`: changes the name of the query. */
export class NameRule implements RewriteRule {
  readonly #change: NameChange
  readonly #isAuto: boolean
  readonly #changes: readonly ReplyChange[]

  /** `isAuto`: changes the name in replies back. */
  constructor(change: NameChange, isAuto: boolean, changes: readonly ReplyChange[]) {
    this.#change = change
    this.#isAuto = isAuto
    this.#changes = changes
  }

  apply(_tx: Transaction, rewriting: Rewriting): RuleOutcome {
    const { name } = rewriting
    const changed = this.#change(name)
    if (changed === undefined) return RuleOutcome.Ignored
    if (!rewriting.rename(changed)) return RuleOutcome.Invalid
    if (this.#isAuto) rewriting.changes.push(new AutoChange(name, rewriting.name))
    rewriting.changes.push(...this.#changes)
    return RuleOutcome.Done
  }
}

/** `ttl`, `rcode` and `cname`: change the replies for some names. */
export class ReplyRule implements RewriteRule {
  readonly #concerns: (name: string) => boolean
  readonly #change: ReplyChange

  constructor(concerns: (name: string) => boolean, change: ReplyChange) {
    this.#concerns = concerns
    this.#change = change
  }

  apply(_tx: Transaction, rewriting: Rewriting): RuleOutcome {
    if (!this.#concerns(rewriting.name)) return RuleOutcome.Ignored
    rewriting.changes.push(this.#change)
    return RuleOutcome.Done
  }
}

/** `type` and `class`: change a number of the query. */
export class NumberRule implements RewriteRule {
  readonly #field: 'qtype' | 'qclass'
  readonly #from: number
  readonly #to: number

  constructor(field: 'qtype' | 'qclass', from: number, to: number) {
    this.#field = field
    this.#from = from
    this.#to = to
  }

  apply({ query }: Transaction): RuleOutcome {
    if (query[this.#field] !== this.#from) return RuleOutcome.Ignored
    query[this.#field] = this.#to
    return RuleOutcome.Done
  }
}

/** What an `edns0` rule does with its option. */
export type OptionAction = 'set' | 'append' | 'replace' | 'unset'

/** `edns0 nsid`: makes the query ask for the identifier of the name server, or not. */
export class NsidRule implements RewriteRule {
  readonly #action: OptionAction

  constructor(action: OptionAction) {
    this.#action = action
  }

  apply({ query }: Transaction): RuleOutcome {
    if (this.#action === 'replace' && !query.nsidRequested) return RuleOutcome.Ignored
    query.nsidRequested = this.#action !== 'unset'
    return RuleOutcome.Done
  }
}

/** `edns0 subnet`: changes the client subnet to the network that the query came from. */
export class SubnetRule implements RewriteRule {
  readonly #action: OptionAction
  readonly #bits: readonly [v4: number, v6: number]

  constructor(action: OptionAction, bits: readonly [v4: number, v6: number]) {
    this.#action = action
    this.#bits = bits
  }

  apply({ query }: Transaction): RuleOutcome {
    if (this.#action === 'unset') {
      query.hasEcs = false
      query.ecsFamily = 0
      query.ecsSourceBits = 0
      return RuleOutcome.Done
    }
    const isUnwanted = this.#action === 'replace' ? !query.hasEcs : query.hasEcs
    if (this.#action !== 'set' && isUnwanted) return RuleOutcome.Ignored
    setSubnet(query, this.#bits[query.peerFamily === 1 ? 0 : 1])
    return RuleOutcome.Done
  }
}

function setSubnet(query: Query, bits: number): void {
  const octets = query.peerFamily === 1 ? 4 : 16
  const network = maskAddress(query.peerAddress.subarray(0, octets), bits)
  query.ecsAddress.fill(0)
  copyOctets(network, 0, query.ecsAddress, 0, octets)
  query.hasEcs = true
  query.ecsFamily = query.peerFamily
  query.ecsSourceBits = bits
}
