import { Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import { Section } from '../../dns/message/section.ts'
import { type Handler, Link, PASS, Trait } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { ZoneSet } from '../../zone/lookup/zone-set.ts'

/** Most octets of a character-string (RFC 1035 section 3.3). */
const TEXT_OCTETS_MAX = 255
const TTL_SECONDS = 0
/** Every name below has two labels; `ZoneSet` matches suffixes, and these are whole names. */
const LABELS = 2

const AUTHORS = 'authors.bind'
const NAMES = ['version.bind', 'version.server', 'hostname.bind', 'id.server', AUTHORS]

interface ChaosOptions {
  readonly version: string
  readonly host: string
  readonly authors: readonly string[]
  /** The status for other queries of class CH: PASS if a directive below answers this class. */
  readonly otherwise: number
}

/**
 * Answers CH TXT for the names above, and passes class IN on. Refuses other queries of class CH,
 * because most plugins below serve IN, and their answers would have the wrong class.
 */
export class Chaos extends Link {
  readonly name = 'chaos'
  readonly #names: ZoneSet
  /** By index of the name: its TXT rdata. `authors.bind` has one per author. */
  readonly #rdata: readonly (readonly Uint8Array[])[]
  readonly #order: Uint8Array
  readonly #otherwise: number

  constructor(next: Handler, options: ChaosOptions) {
    const version = [composeText(options.version)]
    const host = [composeText(options.host)]
    const authors = options.authors.map(composeText)
    super(next, Trait.OtherClass, 0)
    this.#names = new ZoneSet(NAMES.map(composeName))
    this.#otherwise = options.otherwise
    this.#rdata = [version, version, host, host, authors]
    this.#order = Uint8Array.from(authors.keys())
  }

  override before(tx: Transaction): number {
    const { query } = tx
    if (query.qclass === RRClass.IN) return PASS
    if (query.qclass !== RRClass.CH || query.qtype !== RRType.TXT) return this.#otherwise
    const index = query.labelCount === LABELS ? this.#names.match(query) : -1
    if (index === -1) return this.#otherwise
    const rdata = this.#rdata[index]!
    if (rdata.length === 1) addText(tx, rdata[0]!)
    else this.#addShuffled(tx, rdata)
    tx.response.answeredBy = 'chaos'
    tx.response.rcode = Rcode.NOERROR
    return Rcode.NOERROR
  }

  #addShuffled(tx: Transaction, authors: readonly Uint8Array[]): void {
    const order = this.#order
    for (let i = 0; i < order.length; i++) {
      const picked = i + tx.random.below(order.length - i)
      const author = order[picked]!
      order[picked] = order[i]!
      order[i] = author
      addText(tx, authors[author]!)
    }
  }
}

function addText(tx: Transaction, rdata: Uint8Array): void {
  const octets = rdata.length
  tx.response.add(
    Section.Answer,
    tx.query.qname,
    0,
    RRType.TXT,
    RRClass.CH,
    TTL_SECONDS,
    rdata,
    0,
    octets,
  )
}

function composeText(text: string): Uint8Array {
  const octets = Buffer.from(text, 'utf8').subarray(0, TEXT_OCTETS_MAX)
  return Uint8Array.of(octets.length, ...octets)
}

function composeName(text: string): Uint8Array {
  const labels = text.split('.').map(composeText)
  return Uint8Array.of(...labels.flatMap((label) => [...label]), 0)
}
