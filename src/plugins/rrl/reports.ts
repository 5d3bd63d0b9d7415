import { printType } from '../../dns/iana/index.ts'
import type { Query } from '../../dns/message/query.ts'
import { printName } from '../../dns/name/name.ts'
import { maskAddress, printAddress } from '../../dns/text/address.ts'
import { CATEGORY_NAMES, Category, type RrlOptions } from './options.ts'

/** Most prefixes that a thread reports per period. The counters include the others. */
export const REPORTS_MAX = 10
export const REPORT_PERIOD_MS = 60_000

const AMPLIFIED = 'all clients: amplified octets'

/**
 * Reports prefixes above a limit to the log of the control thread, each once per period and in
 * limited number.
 */
export class LimitReports {
  readonly #options: Pick<RrlOptions, 'ipv4Bits' | 'ipv6Bits'>
  readonly #send: (report: string) => void
  /** Hashes of the prefixes reported in this period: the first `count`. */
  readonly #reported = new Int32Array(REPORTS_MAX)
  #count = 0
  #isAmplificationReported = false
  #startMs = Number.NEGATIVE_INFINITY

  constructor(options: Pick<RrlOptions, 'ipv4Bits' | 'ipv6Bits'>, send: (report: string) => void) {
    this.#options = options
    this.#send = send
  }

  /** `hash`: hash of the client's prefix. */
  note(query: Query, hash: number, category: Category, nowMs: number): void {
    this.#turn(nowMs)
    if (this.#count === REPORTS_MAX) return
    for (let i = 0; i < this.#count; i++) if (this.#reported[i] === hash) return
    this.#reported[this.#count++] = hash
    this.#send(`${this.#printPrefix(query)}: ${describe(query, category)}`)
  }

  noteAmplified(nowMs: number): void {
    this.#turn(nowMs)
    if (this.#isAmplificationReported) return
    this.#isAmplificationReported = true
    this.#send(AMPLIFIED)
  }

  #turn(nowMs: number): void {
    if (nowMs - this.#startMs < REPORT_PERIOD_MS) return
    this.#startMs = nowMs
    this.#count = 0
    this.#isAmplificationReported = false
  }

  #printPrefix({ peerAddress, peerFamily }: Query): string {
    const { ipv4Bits, ipv6Bits } = this.#options
    const bits = peerFamily === 1 ? ipv4Bits : ipv6Bits
    return `${printAddress(maskAddress(peerAddress, bits), peerFamily === 1 ? 1 : 2)}/${bits}`
  }
}

/** The question is given for the categories that have accounts per name. */
function describe({ qname, qtype }: Query, category: Category): string {
  const name = CATEGORY_NAMES[category]!
  if (category === Category.Error || category === Category.Request) return name
  return `${name} ${printName(qname)} ${printType(qtype)}`
}
