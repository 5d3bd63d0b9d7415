import { RRClass } from '../dns/iana/classes.ts'
import { RRType } from '../dns/iana/types.ts'
import type { Query } from '../dns/message/query.ts'
import type { Response } from '../dns/message/response.ts'
import { type Handler, type Link, Trait } from '../plugin/handler.ts'
import type { Transaction } from '../plugin/transaction.ts'
import type { AnswerSource } from '../zone/lookup/answer-source.ts'
import type { RoutedBlock } from './routing.ts'

/** A part of a chain that the server runs itself. */
export interface PlannedLink {
  /** The queries that concern it: bits of `Trait`. */
  readonly queries: number
  /** Undefined: it serves these queries with all links below it. */
  readonly link: Link | undefined
  /** Selects the queries that it serves; undefined = all. */
  readonly selects: ((tx: Transaction) => boolean) | undefined
  readonly handler: Handler
}

/**
 * A chain in the form in which the server runs it:
 *
 *     links, first to last ─▶ bottom ─▶ links, last to first
 *
 * `bottom` is the first handler that is not a link. Handlers below it are its own concern.
 */
export interface ChainPlan {
  readonly links: readonly PlannedLink[]
  /** The traits of queries and of replies that concern any link. */
  readonly queries: number
  readonly replies: number
  readonly bottom: Handler
  /** The zones that `bottom` answers from, if it answers from zones alone. */
  readonly source: AnswerSource | undefined
}

export interface PlannedBlock extends RoutedBlock {
  readonly plan: ChainPlan
}

export function planChain(chain: Handler): ChainPlan {
  const links: PlannedLink[] = []
  let handler = chain
  for (;;) {
    const { link, only } = handler
    if (link !== undefined) {
      links.push({ queries: link.queries, link, selects: undefined, handler })
      handler = link.next
    } else if (only !== undefined) {
      links.push({ queries: only.queries, link: undefined, selects: only.selects, handler })
      handler = only.next
    } else break
  }
  const united = (mask: number, bits: number): number => mask | bits
  return {
    links,
    queries: links.map(({ queries }) => queries).reduce(united, 0),
    replies: links.map(({ link }) => link?.replies ?? 0).reduce(united, 0),
    bottom: handler,
    source: handler.source,
  }
}

/** The traits of a query. @hot */
export function traitsOf(query: Query): number {
  let traits: number = Trait.Every
  if (query.ecsFamily !== 0) traits |= Trait.Subnet
  if (query.nsidRequested) traits |= Trait.Nsid
  if (query.qclass !== RRClass.IN) traits |= Trait.OtherClass
  if (query.qtype === RRType.ANY) traits |= Trait.Any
  if (query.dnssecOk) traits |= Trait.Dnssec
  else if (query.qtype >= RRType.RRSIG && query.qtype <= RRType.CDNSKEY) traits |= Trait.Dnssec
  if (query.qtype === RRType.AXFR || query.qtype === RRType.IXFR) traits |= Trait.Transfer
  return traits
}

/** The traits of a reply. @hot */
export function replyTraits(response: Response): number {
  let traits: number = Trait.Records
  if (response.error !== '') traits |= Trait.Failed
  const { count, direct } = response
  if (response.sections > 1 || direct.soaOffset !== 0) traits |= Trait.Extra
  if (count + direct.count > 1) traits |= Trait.Several
  return traits
}
