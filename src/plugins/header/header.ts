import type { Response } from '../../dns/message/response.ts'
import { DROP, type Handler, Link, PASS, Trait } from '../../plugin/handler.ts'
import { isUnwritten } from '../../plugin/status.ts'
import type { Transaction } from '../../plugin/transaction.ts'

const AA = 0x0400
const RD = 0x0100
const RA = 0x0080

/**
 * The flags that can be changed, as bits of the header's second 16-bit field (RFC 1035 section
 * 4.1.1).
 */
export const FLAGS: ReadonlyMap<string, number> = new Map([
  ['aa', AA],
  ['ra', RA],
  ['rd', RD],
])

/** The changes to a header's flags. No bit is in both masks. */
export interface FlagMask {
  readonly set: number
  readonly clear: number
}

export const keepAll: FlagMask = { set: 0, clear: 0 }

/** `mask`, but with `flag` set or cleared: the last rule about a flag wins. */
export function withFlag(mask: FlagMask, flag: number, on: boolean): FlagMask {
  return on
    ? { set: mask.set | flag, clear: mask.clear & ~flag }
    : { set: mask.set & ~flag, clear: mask.clear | flag }
}

/** Changes flags of queries before the plugins below run, and of replies after that. */
export class Header extends Link {
  readonly name = 'header'
  readonly #querySet: number
  readonly #queryClear: number
  readonly #responseSet: number
  readonly #responseClear: number

  constructor(next: Handler, query: FlagMask, response: FlagMask) {
    super(next, isUsed(query) ? Trait.Every : 0, isUsed(response) ? Trait.Every : 0)
    this.#querySet = query.set
    this.#queryClear = query.clear
    this.#responseSet = response.set
    this.#responseClear = response.clear
  }

  override before(tx: Transaction): number {
    const flags = (tx.query.flags | this.#querySet) & ~this.#queryClear
    tx.query.flags = flags
    // The reply's RD is a copy of the query's RD, made before this change.
    tx.response.recursionDesired = (flags & RD) !== 0
    return PASS
  }

  /** The server's own bare errors keep their flags. */
  override after(tx: Transaction, status: number): number {
    if (status !== DROP && !isUnwritten(status)) this.#overrule(tx.response)
    return status
  }

  #overrule(response: Response): void {
    const set = this.#responseSet
    const changed = set | this.#responseClear
    if ((changed & AA) !== 0) response.authoritative = (set & AA) !== 0
    if ((changed & RA) !== 0) response.recursionAvailable = (set & RA) !== 0
    if ((changed & RD) !== 0) response.recursionDesired = (set & RD) !== 0
  }
}

function isUsed({ set, clear }: FlagMask): boolean {
  return (set | clear) !== 0
}
