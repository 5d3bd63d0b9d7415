import { copyName } from '../../authority/append-answer.ts'
import { hasNxname } from '../../dns/dnssec/denial-rdata.ts'
import { Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import type { Response } from '../../dns/message/response.ts'
import { Section } from '../../dns/message/section.ts'
import { setQname } from '../../dns/message/set-qname.ts'
import { lowerName } from '../../dns/name/name.ts'
import type { CounterSlots } from '../../plugin/counter-slots.ts'
import { DROP, type Handler } from '../../plugin/handler.ts'
import { restoreName } from '../../plugin/restore-name.ts'
import type { SearchPaths } from '../../plugin/search-paths.ts'
import { isUnwritten } from '../../plugin/status.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import type { ZoneSet } from '../../zone/lookup/zone-set.ts'

const NAME_OCTETS_MAX = 255
/** Returned by `#settle`: the next name is asked for. No rcode is negative. */
const NEXT_NAME = -4

/** Where the handler finds the search paths; undefined until they are known. */
interface PathSource {
  readonly paths: SearchPaths | undefined
}

/** The search for one query. */
interface Search {
  /** The name that the client asked for. */
  readonly original: Uint8Array
  /** Octets of the labels that the client's user wrote. */
  readonly baseOctets: number
  readonly path: readonly Uint8Array[]
  readonly chainDepth: number
}

/**
 * Tries the names of the client's search path itself, one after the other, so that the client gets
 * its answer with its first query:
 *
 *     www.example.org.default.svc.cluster.local. ─▶ www.example.org.svc.cluster.local. ─▶ … ─▶ www.example.org.
 */
export class Autopath implements Handler {
  readonly name = 'autopath'
  readonly #next: Handler
  readonly #zones: ZoneSet
  readonly #source: PathSource
  readonly #slots: CounterSlots

  constructor(next: Handler, zones: ZoneSet, source: PathSource, slots: CounterSlots) {
    this.#next = next
    this.#zones = zones
    this.#source = source
    this.#slots = slots
    slots.length = 1
  }

  serve(tx: Transaction): number | Promise<number> {
    const { query } = tx
    const { qtype } = query
    // A transfer continues after this call, with the query that it started with.
    const isTransfer = qtype === RRType.AXFR || qtype === RRType.IXFR
    if (query.qclass !== RRClass.IN || isTransfer || this.#zones.match(query) === -1) {
      return this.#next.serve(tx)
    }
    const path = this.#source.paths?.find(tx)
    if (path === undefined) return this.#next.serve(tx)
    const original = query.qname.slice(0, query.qnameOctets)
    const baseOctets = original.length - path[0]!.length
    return this.#walk(tx, { original, baseOctets, path, chainDepth: tx.chainDepth }, 0)
  }

  /** Asks for the names of the search path from number `first` on. */
  #walk(tx: Transaction, search: Search, first: number): number | Promise<number> {
    const { original, path, chainDepth } = search
    for (let i = first; i < path.length; i++) {
      if (i > 0 && !setName(tx, search, i)) continue
      const status = this.#next.serve(tx)
      if (typeof status !== 'number') return this.#walkLater(tx, search, i, status)
      const settled = this.#settle(tx, search, status)
      if (settled !== NEXT_NAME) return settled
    }
    // The client gets the reply to its own query, and continues its search.
    tx.response.startOver()
    tx.chainDepth = chainDepth
    setQname(tx.query, original)
    return this.#next.serve(tx)
  }

  async #walkLater(
    tx: Transaction,
    search: Search,
    i: number,
    asked: Promise<number>,
  ): Promise<number> {
    let status: number
    try {
      status = await asked
    } catch (error) {
      restoreName(tx, search.original)
      throw error
    }
    const settled = this.#settle(tx, search, status)
    return settled === NEXT_NAME ? this.#walk(tx, search, i + 1) : settled
  }

  /** Decides over the reply for one name. */
  #settle(tx: Transaction, { original }: Search, status: number): number {
    const { query, response } = tx
    const isError = isUnwritten(status)
    if (!tx.server.isHandingOver && status !== DROP) {
      // After a SERVFAIL, a later name could have an answer that is not the right one.
      const isAbsent = isError ? status !== Rcode.SERVFAIL : lacksName(response)
      if (isAbsent) return NEXT_NAME
    }
    response.expand(query)
    restoreName(tx, original)
    if (tx.server.isHandingOver || status === DROP || isError) return status
    addAlias(tx, original)
    this.#slots.of(tx)[0]! += 1
    return status
  }
}

/** Makes the query ask for name `i` of the search path. Returns false if it is too long. */
function setName(tx: Transaction, { original, baseOctets, path, chainDepth }: Search, i: number) {
  const suffix = path[i]!
  if (baseOctets + suffix.length > NAME_OCTETS_MAX) return false
  const name = new Uint8Array(baseOctets + suffix.length)
  name.set(original.subarray(0, baseOctets))
  name.set(suffix, baseOctets)
  tx.response.startOver()
  tx.chainDepth = chainDepth
  setQname(tx.query, name)
  return true
}

/** Adds a CNAME from the client's name to the name that has the answer. */
function addAlias({ query, response }: Transaction, original: Uint8Array): void {
  const first = firstAnswer(response)
  if (first === -1) return
  const owner = copyName(response.ownerBytes[first]!, response.ownerOffset[first]!)
  if (Buffer.compare(lowerName(owner), original) === 0) return
  const last = response.count
  const ttl = response.ttlSeconds[first]!
  const { Answer } = Section
  response.add(Answer, query.qname, 0, RRType.CNAME, RRClass.IN, ttl, owner, 0, owner.length)
  if (response.count === last) return
  // Clients expect it before the records that it leads to.
  for (let i = last; i > 0; i--) response.move(i - 1, i)
  response.section[0] = Answer
  response.type[0] = RRType.CNAME
  response.rrclass[0] = RRClass.IN
  response.ttlSeconds[0] = ttl
  response.ownerBytes[0] = query.qname
  response.ownerOffset[0] = 0
  response.rdataBytes[0] = owner
  response.rdataOffset[0] = 0
  response.rdataOctets[0] = owner.length
  response.isSearched = true
  // It has no signature.
  response.authenticData = false
}

/** True for NXDOMAIN, and for NOERROR of compact denial that stands for it. */
function lacksName(response: Response): boolean {
  if (response.rcode === Rcode.NXDOMAIN) return true
  for (let i = 0; i < response.count; i++) {
    const { rdataBytes, rdataOffset, rdataOctets } = response
    if (response.type[i] !== RRType.NSEC || response.section[i] !== Section.Authority) continue
    if (hasNxname(rdataBytes[i]!, rdataOffset[i]!, rdataOctets[i]!)) return true
  }
  return false
}

function firstAnswer({ count, section }: Response): number {
  for (let i = 0; i < count; i++) if (section[i] === Section.Answer) return i
  return -1
}
