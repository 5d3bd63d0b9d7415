import type { Clock } from '../../base/clock.ts'
import { Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import { parseMessage } from '../../dns/message/parse-message.ts'
import { Protocol, type Query } from '../../dns/message/query.ts'
import { Section } from '../../dns/message/section.ts'
import { type AddressFamily, printAddress } from '../../dns/text/address.ts'
import { type Handler, Trait } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import type { ZoneDifference } from '../../xfr/journal/diff.ts'
import { octetsOf } from '../../xfr/journal/journal.ts'
import { type RecordView, recordOctets } from '../../xfr/journal/record-view.ts'
import { VersionView } from '../../xfr/journal/version-view.ts'
import type { ZoneVersions } from '../../xfr/zone-versions.ts'
import type { Histories } from './histories.ts'
import type { TransferRules } from './rules.ts'
import { differences, type TransferContent, WholeZone } from './transfer-content.ts'
import { type TransferCounts, TransferStream } from './transfer-stream.ts'

/** Maximum of concurrent transfers of one block. */
const STREAMS_MAX = 32
/** Maximum of concurrent transfers to one address. */
const STREAMS_PER_PEER_MAX = 4
/**
 * A transfer whose client has read nothing for this long may be dropped to make room for another.
 */
const STALLED_MS_MIN = 5000

export interface FinishedTransfer extends TransferCounts {
  readonly zone: Uint8Array
  readonly kind: 'AXFR' | 'IXFR'
  readonly serial: number
  readonly peerAddress: Uint8Array
  readonly peerFamily: AddressFamily
}

interface TransferParts {
  readonly rules: TransferRules
  readonly versions: ZoneVersions
  readonly histories: Histories
  readonly clock: Clock
  readonly onRefused: () => void
  readonly onEnd: (transfer: FinishedTransfer) => void
}

/**
 * Answers AXFR (RFC 5936) and IXFR (RFC 1995). Over UDP, an AXFR is refused. An IXFR over UDP gets
 * the SOA, so that a client with an older version retries over TCP.
 */
export class Transfer implements Handler {
  readonly name = 'transfer'
  readonly only: Handler['only']
  readonly #next: Handler
  readonly #parts: TransferParts
  /** Running transfers, with the address of the client. */
  readonly #streams = new Map<TransferStream, string>()

  constructor(next: Handler, parts: TransferParts) {
    this.#next = next
    this.only = { queries: Trait.Transfer, next }
    this.#parts = parts
  }

  serve(tx: Transaction): number | Promise<number> {
    const { qtype, qclass, protocol } = tx.query
    if (qtype !== RRType.AXFR && qtype !== RRType.IXFR) return this.#next.serve(tx)
    const rule = this.#parts.rules.match(tx.query)
    if (rule === undefined || qclass !== RRClass.IN) return this.#next.serve(tx)
    if (!rule.allows(tx)) return this.#refuse(tx)
    if (protocol !== Protocol.Udp) return this.#serveStream(tx)
    return qtype === RRType.AXFR ? this.#refuse(tx) : this.#serveSoa(tx)
  }

  #refuse(tx: Transaction): number {
    // Data threads serve UDP; their metrics are not exported.
    if (tx.query.protocol !== Protocol.Udp) this.#parts.onRefused()
    tx.response.answeredBy = this.name
    return Rcode.REFUSED
  }

  #serveStream(tx: Transaction): number | Promise<number> {
    const { query, response } = tx
    const version = this.#parts.versions.find(query.qname.subarray(0, query.qnameOctets))
    const view = version === undefined ? undefined : VersionView.open(version)
    const soa = view?.soa()
    if (view === undefined || soa === undefined) return this.#next.serve(tx)
    response.answeredBy = this.name
    if (!this.#hasRoom(peerText(query))) {
      response.error = 'too many transfers are under way'
      return Rcode.SERVFAIL
    }
    if (query.qtype === RRType.AXFR) return this.#startWhole(tx, view, soa)
    const serial = clientSerial(query)
    if (serial === undefined) return Rcode.FORMERR
    return this.#serveIxfr(tx, view, soa, serial)
  }

  /** Sends the whole zone if the differences are not known, or are not smaller. */
  #serveIxfr(tx: Transaction, view: VersionView, soa: RecordView, serial: number): number {
    const known = this.#parts.histories.since(view.zone, serial)
    const newest = known === undefined ? undefined : VersionView.open(known.version)
    const newestSoa = newest?.soa()
    const steps = known?.steps
    if (newest === undefined || newestSoa === undefined || steps === undefined) {
      return this.#startWhole(tx, view, soa)
    }
    if (steps.length > 0 && !isWorthIt(steps, newest)) {
      return this.#startWhole(tx, view, soa)
    }
    return this.#start(tx, newest, 'IXFR', differences(newestSoa, steps))
  }

  #startWhole(tx: Transaction, view: VersionView, soa: RecordView): number {
    return this.#start(tx, view, 'AXFR', new WholeZone(soa, view.cursor()))
  }

  #start(
    tx: Transaction,
    view: VersionView,
    kind: 'AXFR' | 'IXFR',
    content: TransferContent,
  ): number {
    const { clock, onEnd } = this.#parts
    const { zone, serial } = view
    const peerAddress = tx.query.peerAddress.slice()
    const about = { zone, serial, kind, peerAddress, peerFamily: peerFamilyOf(tx.query) }
    const peer = peerText(tx.query)
    tx.response.authoritative = true
    const stream = new TransferStream(tx, content, clock, (counts) => {
      this.#streams.delete(stream)
      onEnd({ ...counts, ...about })
    })
    this.#streams.set(stream, peer)
    tx.stream = stream
    return Rcode.NOERROR
  }

  /**
   * True if one more transfer to `peer` may start. If needed, drops the transfer that has stalled
   * for longest.
   */
  #hasRoom(peer: string): boolean {
    const all = [...this.#streams.keys()]
    const own = all.filter((stream) => this.#streams.get(stream) === peer)
    if (all.length < STREAMS_MAX && own.length < STREAMS_PER_PEER_MAX) return true
    const rivals = own.length < STREAMS_PER_PEER_MAX ? all : own
    const worst = rivals.reduce((a, b) => (b.takenMs < a.takenMs ? b : a))
    if (this.#parts.clock.monotonic() - worst.takenMs < STALLED_MS_MIN) return false
    worst.abandon()
    this.#streams.delete(worst)
    return true
  }

  /** Answers as the zone's handler answers a query for its SOA (RFC 1995 section 2). */
  #serveSoa(tx: Transaction): number | Promise<number> {
    const { query } = tx
    query.qtype = RRType.SOA
    const status = this.#next.serve(tx)
    if (typeof status === 'number') return this.#keepSoa(tx, status)
    return status.then((later) => this.#keepSoa(tx, later))
  }

  #keepSoa(tx: Transaction, status: number): number {
    const { query, response } = tx
    query.qtype = RRType.IXFR
    if (status !== Rcode.NOERROR) return status
    const isApex = response.authoritative && response.count > 0
    if (!isApex || response.section[0] !== Section.Answer || response.type[0] !== RRType.SOA) {
      return this.#refuse(tx)
    }
    response.count = 1
    return status
  }
}

function peerText(query: Query): string {
  return printAddress(query.peerAddress, peerFamilyOf(query))
}

function peerFamilyOf({ peerFamily }: Query): AddressFamily {
  return peerFamily === 1 ? 1 : 2
}

/** True if the differences have fewer octets than the zone. Reads only as much of the zone as needed. */
function isWorthIt(steps: readonly ZoneDifference[], view: VersionView): boolean {
  let left = steps.reduce((sum, step) => sum + octetsOf(step), 0)
  for (const record of view.content()) {
    left -= recordOctets(record)
    if (left < 0) return true
  }
  return false
}

/** Returns the serial of the SOA in an IXFR's authority section; undefined = no SOA. */
function clientSerial(query: Query): number | undefined {
  const message = parseMessage(query.packet.subarray(0, query.packetOctets))
  const soa = message?.authority[0]
  if (soa === undefined || soa.type !== RRType.SOA || soa.rdata.length < 22) return undefined
  return new DataView(soa.rdata.buffer, soa.rdata.byteOffset).getUint32(soa.rdata.length - 20)
}
