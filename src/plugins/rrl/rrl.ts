import { Debit, type Rate, RateTable, ticksOf } from '../../base/rate-table.ts'
import { TabulationHash } from '../../base/tabulation-hash.ts'
import { Opcode, Rcode, RRType } from '../../dns/iana/index.ts'
import type { Query } from '../../dns/message/query.ts'
import type { Response } from '../../dns/message/response.ts'
import { Section } from '../../dns/message/section.ts'
import type { HashedName } from '../../dns/name/hashed-name.ts'
import type { CounterSlots } from '../../plugin/counter-slots.ts'
import { LimitAction, type ReplyLimiter } from '../../plugin/reply-limiter.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { AmplificationLimit } from './amplification.ts'
import { Category, type RrlOptions } from './options.ts'
import type { LimitReports } from './reports.ts'

/** Index of the counters in a slot. */
export const RrlCount = {
  /** Six counters, by `Category`. */
  Exceeded: 0,
  Amplified: 6,
  Truncated: 7,
  Dropped: 8,
} as const
const RRL_COUNTS = 9
/** 2^32 divided by the golden ratio: distributes small numbers over all bits. */
const GOLDEN_RATIO = 0x9e3779b1

/** Memory that all threads share. */
export interface RrlMemory {
  /** Accounts of `RateTable`. */
  readonly accounts: Int32Array
  /** Tables of `TabulationHash`. */
  readonly secret: Int32Array
  /** Account of `AmplificationLimit`. */
  readonly amplification: Float64Array
}

/**
 * Response rate limiting, as in BIND: replies of one category, for one name, to one client prefix
 * have one account.
 *
 *     prefix, category, name ─▶ keyed hash ─▶ RateTable ─▶ Send, Truncate, Drop
 *
 * If the zone would make the same reply for many names, their common name counts: the zone of an
 * NXDOMAIN, the delegated name of a referral, the closest encloser of a wildcard
 * (`Response.imputedLabel`). Errors have no name.
 */
export class Rrl implements ReplyLimiter {
  readonly #options: RrlOptions
  readonly #slots: CounterSlots
  readonly #reports: LimitReports
  /** Undefined until the control thread has made its memory. */
  #table: RateTable | undefined = undefined
  #hash: TabulationHash | undefined = undefined
  #amplification: AmplificationLimit | undefined = undefined
  #nowMs = -1
  #nowTicks = 0

  constructor(options: RrlOptions, slots: CounterSlots, reports: LimitReports) {
    this.#options = options
    this.#slots = slots
    this.#reports = reports
    slots.length = RRL_COUNTS
  }

  use({ accounts, secret, amplification }: RrlMemory): void {
    const { amplifiedOctets } = this.#options
    this.#hash = new TabulationHash(secret)
    this.#table = new RateTable(accounts)
    if (amplifiedOctets === 0) return
    this.#amplification = new AmplificationLimit(amplification, amplifiedOctets)
  }

  /** @hot */
  decide(tx: Transaction): LimitAction {
    const { query, response } = tx
    const { zones, exempt, rates } = this.#options
    if (this.#table === undefined) return LimitAction.Send
    if (exempt?.has(query.peerAddress, 0, query.peerFamily) === true) return LimitAction.Send
    // A query without a server block, or a malformed packet, has no zone.
    if (zones !== undefined && tx.zone !== '' && zones.match(query) === -1) return LimitAction.Send
    if (tx.startedMs !== this.#nowMs) {
      this.#nowMs = tx.startedMs
      this.#nowTicks = ticksOf(tx.startedMs)
    }
    const category = categorize(query, response)
    const rate = rates[category]
    if (rate !== undefined) {
      const name = chargedName(query, response, category)
      const type = category === Category.Response ? chargedType(query, response) : 0
      // Names that collide share an account of one prefix, which their clients can exhaust anyway.
      const kind = category | (query.peerFamily << 4) | (type << 8)
      const action = this.#debit(tx, rate, category, name ^ Math.imul(kind, GOLDEN_RATIO))
      if (action !== LimitAction.Send) return action
    }
    const all = rates[Category.Request]
    if (all === undefined) return LimitAction.Send
    const kind = Category.Request | (query.peerFamily << 4)
    return this.#debit(tx, all, Category.Request, Math.imul(kind, GOLDEN_RATIO))
  }

  /** @hot */
  amplifies(tx: Transaction, name: HashedName, octets: number): boolean {
    const limit = this.#amplification
    if (limit === undefined || octets <= 0) return false
    const { reportOnly, zones, exempt } = this.#options
    if (exempt?.has(tx.query.peerAddress, 0, tx.query.peerFamily) === true) return false
    if (zones !== undefined && zones.match(name) === -1) return false
    if (!limit.exceeds(octets, tx.startedMs)) return false
    const counters = this.#slots.of(tx)
    counters[RrlCount.Amplified]! += 1
    this.#reports.noteAmplified(tx.startedMs)
    if (reportOnly) return false
    counters[RrlCount.Truncated]! += 1
    return true
  }

  /** `word`: what the account has besides the prefix. @hot */
  #debit(tx: Transaction, rate: Rate, category: Category, word: number): LimitAction {
    const hash = this.#hashPrefix(tx.query, word)
    // A client does not retry after a truncated error, so errors are dropped.
    const slip = category === Category.Error ? 0 : this.#options.slip
    const debit = this.#table!.debit(hash, this.#nowTicks, rate, slip)
    return debit === Debit.Paid ? LimitAction.Send : this.#exceed(tx, category, debit)
  }

  /** @hot */
  #hashPrefix({ peerAddress, peerFamily }: Query, word: number): number {
    const { ipv4Bits, ipv6Bits } = this.#options
    return this.#hash!.of(peerAddress, peerFamily === 1 ? ipv4Bits : ipv6Bits, word)
  }

  #exceed(tx: Transaction, category: Category, debit: Debit): LimitAction {
    const counters = this.#slots.of(tx)
    counters[RrlCount.Exceeded + category]! += 1
    this.#reports.note(tx.query, this.#hashPrefix(tx.query, 0), category, this.#nowMs)
    if (this.#options.reportOnly) return LimitAction.Send
    const isTruncated = debit === Debit.Slipped
    counters[isTruncated ? RrlCount.Truncated : RrlCount.Dropped]! += 1
    return isTruncated ? LimitAction.Truncate : LimitAction.Drop
  }
}

/** The category of a reply that is about to be sent. @hot */
function categorize(query: Query, response: Response): Category {
  const { rcode } = response
  if (rcode === Rcode.NXDOMAIN) return Category.Nxdomain
  if (rcode !== Rcode.NOERROR) return Category.Error
  // Each NOTIFY is about another zone.
  if (query.opcode !== Opcode.QUERY) return Category.Response
  const { direct } = response
  if (direct.count > 0) return direct.isNegative ? Category.Nodata : Category.Response
  let isReferral = false
  for (let i = 0; i < response.count; i++) {
    if (response.section[i] === Section.Answer) return Category.Response
    if (response.section[i] !== Section.Authority) continue
    if (response.type[i] === RRType.NS) isReferral = true
    else if (response.type[i] === RRType.SOA) return Category.Nodata
  }
  return isReferral ? Category.Referral : Category.Nodata
}

/** The hash of the name that a reply is charged to; 0 = none. @hot */
function chargedName(query: Query, { imputedLabel }: Response, category: Category): number {
  if (category === Category.Error) return 0
  const { labelCount, suffixHash } = query
  // NXDOMAIN at label 0 comes from a plugin without zones: all such replies share an account.
  if (category === Category.Nxdomain && imputedLabel === 0) return suffixHash[labelCount]!
  return suffixHash[Math.min(imputedLabel, labelCount)]!
}

/**
 * The type that a positive reply is charged to: the query type if the reply has such a record, else
 * the type of its first record. A CNAME, a DNAME or ANY answers any query type, so the query type
 * does not distinguish such replies. @hot
 */
function chargedType({ qtype }: Query, response: Response): number {
  // Whatever CNAMEs come first, the records at their end have the query type.
  if (response.direct.count > 0) return qtype
  let first = 0
  for (let i = 0; i < response.count; i++) {
    if (response.section[i] !== Section.Answer) continue
    const type = response.type[i]!
    if (type === qtype) return qtype
    if (first === 0) first = type
  }
  return first
}
