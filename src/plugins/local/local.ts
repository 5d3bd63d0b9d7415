import { Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import { Section } from '../../dns/message/section.ts'
import type { HashedName } from '../../dns/name/hashed-name.ts'
import type { CounterSlots } from '../../plugin/counter-slots.ts'
import { type Handler, Link, PASS, Trait } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { ZoneSet } from '../../zone/lookup/zone-set.ts'

/** A week: these answers never change. */
const TTL_SECONDS = 604_800

const octets = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'latin1'))

const LOCALHOST = octets('\x09localhost\0')
const ZONES = [
  LOCALHOST,
  octets('\x010\x07in-addr\x04arpa\0'),
  octets('\x03127\x07in-addr\x04arpa\0'),
  octets('\x03255\x07in-addr\x04arpa\0'),
]
const LOCALHOST_INDEX = 0
/** Labels of each of ZONES. */
const ZONE_LABELS = [1, 3, 3, 3]
const LOOPBACK_NAME = octets('\x011\x010\x010\x03127\x07in-addr\x04arpa\0')

const LOOPBACK_IPV4 = Uint8Array.of(127, 0, 0, 1)
const LOOPBACK_IPV6 = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
/** localhost. root.localhost. serial 1, refresh, retry and expire 0, minimum as the TTL. */
const SOA = Uint8Array.of(
  ...octets('\x09localhost\0\x04root\x09localhost\0'),
  ...[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
  ...[0, TTL_SECONDS >> 16, (TTL_SECONDS >> 8) & 0xff, TTL_SECONDS & 0xff],
)

/**
 * Answers for the zones above, for names below `localhost`, and optionally for names that begin
 * with `localhost`.
 */
export class Local extends Link {
  readonly name = 'local'
  readonly #zones = new ZoneSet(ZONES)
  readonly #slots: CounterSlots
  readonly #answersPrefix: boolean

  /**
   * `slots`: with one counter, queries for localhost. `answersPrefix`: also for
   * `localhost.example.org.`.
   */
  constructor(next: Handler, slots: CounterSlots, answersPrefix: boolean) {
    super(next, Trait.Every, 0)
    this.#answersPrefix = answersPrefix
    this.#slots = slots
    slots.length = 1
  }

  /** @hot */
  override before(tx: Transaction): number {
    const { query } = tx
    if (query.qclass !== RRClass.IN) return PASS
    const zone = this.#zones.match(query)
    const isBelow = zone === LOCALHOST_INDEX && query.labelCount > 1
    // `localhost.` itself is one of the zones above, and not a prefix of another name.
    const isPrefixed = this.#answersPrefix && query.labelCount > 1 && beginsWithLocalhost(query)
    if (isBelow || isPrefixed) {
      this.#slots.of(tx)[0]! += 1
      return this.#answerLoopback(tx)
    }
    if (zone === -1) return PASS
    if (query.labelCount === ZONE_LABELS[zone]) return this.#answerApex(tx, zone)
    if (isLoopbackName(query)) {
      if (query.qtype === RRType.PTR) return answer(tx, RRType.PTR, LOCALHOST)
      return deny(tx, ZONES[zone]!, Rcode.NOERROR)
    }
    return deny(tx, ZONES[zone]!, Rcode.NXDOMAIN)
  }

  #answerApex(tx: Transaction, zone: number): number {
    if (tx.query.qtype === RRType.SOA) return answer(tx, RRType.SOA, SOA)
    if (tx.query.qtype === RRType.NS) return answer(tx, RRType.NS, LOCALHOST)
    if (zone === LOCALHOST_INDEX) return this.#answerLoopback(tx)
    return deny(tx, tx.query.qname, Rcode.NOERROR)
  }

  #answerLoopback(tx: Transaction): number {
    if (tx.query.qtype === RRType.A) return answer(tx, RRType.A, LOOPBACK_IPV4)
    if (tx.query.qtype === RRType.AAAA) return answer(tx, RRType.AAAA, LOOPBACK_IPV6)
    return deny(tx, tx.query.qname, Rcode.NOERROR)
  }
}

function answer(tx: Transaction, type: number, rdata: Uint8Array): number {
  add(tx, Section.Answer, tx.query.qname, type, rdata)
  return finish(tx, Rcode.NOERROR)
}

function deny(tx: Transaction, owner: Uint8Array, rcode: number): number {
  add(tx, Section.Authority, owner, RRType.SOA, SOA)
  return finish(tx, rcode)
}

function finish(tx: Transaction, rcode: number): number {
  tx.response.imputedLabel = tx.query.labelCount
  tx.response.answeredBy = 'local'
  tx.response.needsSigning = true
  tx.response.rcode = rcode
  return rcode
}

function add(
  tx: Transaction,
  section: Section,
  owner: Uint8Array,
  type: number,
  rdata: Uint8Array,
): void {
  tx.response.add(section, owner, 0, type, RRClass.IN, TTL_SECONDS, rdata, 0, rdata.length)
}

/**
 * Resolvers with a search list query `localhost.example.org.`. Such queries must not leave the
 * machine either.
 */
function beginsWithLocalhost({ qname }: HashedName): boolean {
  for (let i = 0; i <= LOCALHOST[0]!; i++) if (qname[i] !== LOCALHOST[i]) return false
  return true
}

function isLoopbackName(query: HashedName): boolean {
  if (query.qnameOctets !== LOOPBACK_NAME.length) return false
  for (let i = 0; i < LOOPBACK_NAME.length; i++) {
    if (query.qname[i] !== LOOPBACK_NAME[i]) return false
  }
  return true
}
