import { equalOctets } from '../../base/octets.ts'
import { RRType } from '../../dns/iana/index.ts'
import type { Handler } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'

/** Times that the probe may arrive. A client may send a query twice. */
const SEEN_MAX = 2

/** The query that the server sends to itself. */
export interface LoopProbe {
  /** Lower-case wire form. */
  readonly name: Uint8Array
  /** False: the handler ignores the probe, so that no client can use it to end the server. */
  isWatched: boolean
  /** Times that it arrived since it was sent last: a repeated probe is not a loop. */
  seen: number
  /** Called once the probe arrived more than twice. */
  readonly onLoop: (tx: Transaction) => void
}

/** Counts how often the server's own probe arrives. */
export class Loop implements Handler {
  readonly name = 'loop'
  readonly #next: Handler
  readonly #probe: LoopProbe

  constructor(next: Handler, probe: LoopProbe) {
    this.#next = next
    this.#probe = probe
  }

  serve(tx: Transaction): number | Promise<number> {
    if (this.#isProbe(tx)) {
      this.#probe.seen++
      if (this.#probe.seen > SEEN_MAX) this.#probe.onLoop(tx)
    }
    return this.#next.serve(tx)
  }

  #isProbe({ query }: Transaction): boolean {
    const { name, isWatched } = this.#probe
    if (query.qtype !== RRType.HINFO || !isWatched) return false
    if (query.qnameOctets !== name.length) return false
    return equalOctets(query.qname, 0, name, 0, name.length)
  }
}
