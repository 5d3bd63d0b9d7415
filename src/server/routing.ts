import { RRClass } from '../dns/iana/classes.ts'
import { RRType } from '../dns/iana/types.ts'
import type { Query } from '../dns/message/query.ts'
import type { HashedName } from '../dns/name/hashed-name.ts'
import type { ZoneDirectory } from '../dns/name/zone-directory.ts'
import type { Handler } from '../plugin/handler.ts'
import type { QueryTap } from '../plugin/query-tap.ts'
import type { ReplyLimiter } from '../plugin/reply-limiter.ts'
import type { Transaction } from '../plugin/transaction.ts'
import type { AnswerSource } from '../zone/lookup/answer-source.ts'
import { countLabels, ZoneSet } from '../zone/lookup/zone-set.ts'

/** One zone of one server block: a possible destination of a query. */
export interface RoutedBlock {
  /** Lower-case wire form. */
  readonly zone: Uint8Array
  /** Presentation form with the final dot. */
  readonly zoneText: string
  readonly chain: Handler
  /** The zones that the chain answers from, in its order; absent = none. */
  readonly sources?: readonly AnswerSource[]
  /** Set by `view`: all must return true. */
  readonly filters: readonly ((tx: Transaction) => boolean)[]
  /** Limits UDP replies; absent = no limit. */
  readonly limiter?: ReplyLimiter | undefined
  /** Sees all queries and replies; absent = none does. */
  readonly tap?: QueryTap | undefined
  /** Name of the view; '' = none. */
  readonly viewName: string
  /** Most octets of a UDP reply, and the size we advertise: 512..4096. */
  readonly bufsizeOctets: number
  /** Set by `debug`: an exception of a handler ends the process instead of causing a SERVFAIL. */
  readonly debug: boolean
  /** True if the chain takes class CH. Otherwise such queries are refused. */
  readonly takesChaos?: boolean
  /** True if the chain accepts NOTIFYs. Otherwise they are refused. */
  readonly takesNotify?: boolean
}

/**
 * Finds the block for a query: longest zone first (RFC 1034 section 4.3.2 step 2). Blocks of one
 * zone are tried in the order of the Corefile; the first whose view accepts the query serves it.
 * One probe of a hash table per label, whatever the number of zones.
 */
export class RoutingTable<B extends RoutedBlock = RoutedBlock> {
  readonly #zones: ZoneSet
  /** Parallel to `#zones`: the blocks of that zone, in order, and the labels of its name. */
  readonly #blocks: readonly (readonly B[])[]
  readonly #labelCount: readonly number[]

  /** The zones of all blocks, regardless of views. */
  get zones(): ZoneDirectory {
    return this.#zones
  }

  /** See `ZoneSet`. */
  deepestAround(name: HashedName): number {
    return this.#zones.deepestAround(name)
  }

  constructor(blocks: readonly B[]) {
    const byZone = new Map<string, B[]>()
    for (const block of blocks) {
      const key = Buffer.from(block.zone).toString('latin1')
      const same = byZone.get(key)
      if (same === undefined) byZone.set(key, [block])
      else same.push(block)
    }
    this.#blocks = [...byZone.values()]
    this.#zones = new ZoneSet(this.#blocks.map((same) => same[0]!.zone))
    this.#labelCount = this.#zones.zones.map(countLabels)
  }

  /**
   * Returns the block that serves `tx.query`, or undefined: refuse. A DS record lives on the
   * parent's side of a cut (RFC 4035 section 3.1.4.1). So a query for the DS of a zone that we
   * serve goes to the block above it, if there is one.
   */
  find(tx: Transaction): B | undefined {
    const query = tx.query
    if (query.qtype === RRType.DS && query.labelCount > 0) {
      const above = this.#findFrom(tx, 1)
      if (above !== undefined) return above
    }
    return this.#findFrom(tx, 0)
  }

  /**
   * Returns the block that serves the name for every client, regardless of views; undefined = it
   * depends on the client.
   */
  findUnconditional(name: HashedName): B | undefined {
    const zone = this.#zones.match(name)
    const first = zone === -1 ? undefined : this.#blocks[zone]![0]!
    return first?.filters.length === 0 ? first : undefined
  }

  #findFrom(tx: Transaction, start: number): B | undefined {
    const query = tx.query
    let label = start
    for (;;) {
      const zone = this.#zones.match(query, label)
      if (zone === -1) return undefined
      const block = firstPassing(this.#blocks[zone]!, tx)
      if (block !== undefined) return takesClass(block, query) ? block : undefined
      label = query.labelCount - this.#labelCount[zone]! + 1
    }
  }
}

function firstPassing<B extends RoutedBlock>(blocks: readonly B[], tx: Transaction): B | undefined {
  for (let i = 0; i < blocks.length; i++) {
    const block = blocks[i]!
    tx.zone = block.zoneText
    if (passes(block, tx)) return block
  }
  return undefined
}

function passes(block: RoutedBlock, tx: Transaction): boolean {
  for (let i = 0; i < block.filters.length; i++) if (!block.filters[i]!(tx)) return false
  return true
}

/**
 * Only blocks that accept it get class CH; no block gets other classes except IN. The handler that takes CH
 * passes none on, so only links above it need to check the class.
 */
function takesClass(block: RoutedBlock, query: Query): boolean {
  if (query.qclass === RRClass.IN) return true
  return query.qclass === RRClass.CH && block.takesChaos === true
}
