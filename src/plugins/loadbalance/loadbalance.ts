import { Rcode, RRType } from '../../dns/iana/index.ts'
import { type Response, signedType } from '../../dns/message/response.ts'
import { Section } from '../../dns/message/section.ts'
import type { AddressSet } from '../../dns/text/address-set.ts'
import { DROP, type Handler, Link, Trait } from '../../plugin/handler.ts'
import { isUnwritten } from '../../plugin/status.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { RANKS_MAX, Reorder } from './reorder.ts'
import { findWeight, type WeightMemory } from './weights.ts'

/**
 * The order of a section: aliases before their targets, then the records that can be balanced, and
 * their signatures.
 */
const Rank = {
  Alias: 0,
  Other: 1,
  Address: 2,
  AddressSignature: 3,
  Exchange: 4,
  ExchangeSignature: 5,
} as const
const RANKS = 6

/** With `prefer`: aliases, one rank per network, the other addresses, MX, the rest. */
const PREFERRED_START = 1
const PREFERRED_END = 3
export const PREFERRED_MAX = RANKS_MAX - PREFERRED_START - PREFERRED_END

/** Weight of an address that the weight file does not name. */
const DEFAULT_WEIGHT = 1

/** The weights of a policy; replaced when the file changes. */
export interface WeightSource {
  current: WeightMemory
}

interface LoadbalanceOptions {
  /** Present = the policy draws one address by weight to be first; absent = it shuffles everything. */
  readonly weights: WeightSource | undefined
  /** Networks whose addresses are first, in order of preference; 0..PREFERRED_MAX. */
  readonly preferred: readonly AddressSet[]
}

/** Reorders addresses and mail exchanges in answers from below. */
export class Loadbalance extends Link {
  readonly name = 'loadbalance'
  readonly #weights: WeightSource | undefined
  readonly #preferred: readonly AddressSet[]
  readonly #reorder = new Reorder()

  constructor(next: Handler, options: LoadbalanceOptions) {
    super(next, 0, Trait.Several)
    this.#weights = options.weights
    this.#preferred = options.preferred
  }

  override after(tx: Transaction, status: number): number {
    const { query, response } = tx
    if (status === DROP || isUnwritten(status) || response.rcode !== Rcode.NOERROR) return status
    if (query.qtype === RRType.AXFR || query.qtype === RRType.IXFR) return status
    if (response.count > 1) this.#balance(tx)
    return status
  }

  #balance(tx: Transaction): void {
    const weights = this.#weights
    if (weights === undefined) {
      this.#shuffle(tx, Section.Answer)
      this.#shuffle(tx, Section.Authority)
      this.#shuffle(tx, Section.Additional)
    } else if (leadsToAddresses(tx.query.qtype)) {
      this.#draw(tx, Section.Answer, weights.current)
      this.#draw(tx, Section.Additional, weights.current)
    }
    if (this.#preferred.length > 0) {
      this.#prefer(tx, Section.Answer)
      this.#prefer(tx, Section.Additional)
    }
  }

  #shuffle(tx: Transaction, section: Section): void {
    const reorder = this.#reorder
    reorder.gather(tx.response, section)
    if (reorder.count < 2) return
    this.#rankByType(tx)
    reorder.sort(RANKS)
    this.#shuffleRank(tx, Rank.Address)
    this.#shuffleRank(tx, Rank.Exchange)
    reorder.apply(tx.response)
  }

  /** Fisher and Yates's shuffle. */
  #shuffleRank(tx: Transaction, rank: number): void {
    const { start } = this.#reorder
    const end = start[rank + 1]!
    for (let i = start[rank]!; i < end - 1; i++) {
      this.#reorder.swap(i, i + tx.random.below(end - i))
    }
  }

  /** Draws one address by weight and puts it first. */
  #draw(tx: Transaction, section: Section, weights: WeightMemory): void {
    const reorder = this.#reorder
    reorder.gather(tx.response, section)
    if (reorder.count < 2) return
    this.#rankByType(tx)
    reorder.sort(RANKS)
    const start = reorder.start[Rank.Address]!
    const end = reorder.start[Rank.Address + 1]!
    if (start === end) return
    let sum = 0
    for (let i = start; i < end; i++) sum += this.#weightOf(tx, i, weights)
    let left = tx.random.below(sum)
    for (let i = start; i < end; i++) {
      left -= this.#weightOf(tx, i, weights)
      if (left >= 0) continue
      reorder.swap(start, i)
      break
    }
    reorder.apply(tx.response)
  }

  #weightOf(tx: Transaction, ordinal: number, weights: WeightMemory): number {
    const { response } = tx
    const i = this.#reorder.position[this.#reorder.order[ordinal]!]!
    const weight = findWeight(
      weights,
      response.ownerBytes[i]!,
      response.ownerOffset[i]!,
      response.rdataBytes[i]!,
      response.rdataOffset[i]!,
      response.rdataOctets[i]!,
    )
    return weight === 0 ? DEFAULT_WEIGHT : weight
  }

  #rankByType(tx: Transaction): void {
    const { response } = tx
    const reorder = this.#reorder
    for (let i = 0; i < reorder.count; i++) {
      reorder.rank[i] = rankOf(response, reorder.position[i]!)
    }
  }

  /** Sorts stably, so that shuffled addresses stay shuffled within a network. */
  #prefer(tx: Transaction, section: Section): void {
    const { response } = tx
    const reorder = this.#reorder
    reorder.gather(response, section)
    if (reorder.count < 2) return
    for (let i = 0; i < reorder.count; i++) {
      reorder.rank[i] = this.#preference(tx, reorder.position[i]!)
    }
    reorder.sort(PREFERRED_START + this.#preferred.length + PREFERRED_END)
    reorder.apply(response)
  }

  #preference(tx: Transaction, i: number): number {
    const { response } = tx
    const networks = this.#preferred.length
    const type = response.type[i]!
    if (isAlias(signedType(response, i))) return 0
    if (type === RRType.MX) return PREFERRED_START + networks + 1
    if (!isAddress(type)) return PREFERRED_START + networks + 2
    const family = type === RRType.A ? 1 : 2
    for (let n = 0; n < networks; n++) {
      const network = this.#preferred[n]!
      if (network.has(response.rdataBytes[i]!, response.rdataOffset[i]!, family)) {
        return PREFERRED_START + n
      }
    }
    return PREFERRED_START + networks
  }
}

function rankOf(response: Response, i: number): number {
  const isSignature = response.type[i] === RRType.RRSIG
  const type = signedType(response, i)
  if (isAlias(type)) return Rank.Alias
  if (isAddress(type)) return isSignature ? Rank.AddressSignature : Rank.Address
  if (type !== RRType.MX) return Rank.Other
  return isSignature ? Rank.ExchangeSignature : Rank.Exchange
}

/** A DNAME keeps its place before the CNAME that it makes (RFC 6672 section 3.2). */
function isAlias(type: number): boolean {
  return type === RRType.CNAME || type === RRType.DNAME
}

function isAddress(type: number): boolean {
  return type === RRType.A || type === RRType.AAAA
}

function leadsToAddresses(qtype: number): boolean {
  return isAddress(qtype) || qtype === RRType.SRV
}
