import { Opcode, Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import { parseMessage } from '../../dns/message/parse-message.ts'
import type { Query } from '../../dns/message/query.ts'
import { nameKey } from '../../dns/name/name.ts'
import { printAddress } from '../../dns/text/address.ts'
import type { AddressSet } from '../../dns/text/address-set.ts'
import { DROP, type Handler } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { soaSerial } from '../../xfr/in/transfer-reader.ts'

/** A zone with the data that is needed to handle its NOTIFYs. */
interface NotifiedZone {
  readonly zone: Uint8Array
  /** Addresses of its primaries. */
  readonly primaries: AddressSet
  /** The key that NOTIFYs must be signed with; undefined = none. */
  readonly keyName: Uint8Array | undefined
}

/** A NOTIFY that is handed to the control thread. */
interface Notice {
  readonly index: number
  /** -1 = the NOTIFY has no serial. */
  readonly serial: number
  readonly host: string
}

/** Accepts NOTIFYs (RFC 1996) from the primaries, and leaves queries to `zones`. */
export class Secondary implements Handler {
  readonly name = 'secondary'
  readonly #zones: Handler
  readonly #notified: readonly NotifiedZone[]
  readonly #byKey: ReadonlyMap<string, number>
  readonly #report: (text: string) => void

  constructor(zones: Handler, notified: readonly NotifiedZone[], report: (text: string) => void) {
    this.#zones = zones
    this.#notified = notified
    this.#byKey = new Map(notified.map(({ zone }, i) => [nameKey(zone), i]))
    this.#report = report
  }

  serve(tx: Transaction): number | Promise<number> {
    return tx.query.opcode === Opcode.NOTIFY ? this.#takeNotify(tx) : this.#zones.serve(tx)
  }

  #takeNotify(tx: Transaction): number {
    const { query, response } = tx
    response.answeredBy = this.name
    if (query.qclass !== RRClass.IN || query.qtype !== RRType.SOA) return Rcode.NOTIMP
    const qname = query.qname.subarray(0, query.qnameOctets)
    const index = this.#byKey.get(nameKey(qname))
    if (index === undefined) {
      response.rcode = Rcode.NOTAUTH
      return Rcode.NOTAUTH
    }
    const { primaries, keyName } = this.#notified[index]!
    // As CoreDNS, and as RFC 1996 section 3.10 says: no answer to unknown senders.
    if (!primaries.has(query.peerAddress, 0, query.peerFamily)) return DROP
    if (keyName !== undefined && !isSignedBy(tx, keyName)) return Rcode.REFUSED
    const family = query.peerFamily === 1 ? 1 : 2
    const host = printAddress(query.peerAddress, family)
    this.#report(printNotice({ index, serial: announcedSerial(query), host }))
    response.authoritative = true
    return Rcode.NOERROR
  }
}

function isSignedBy({ tsigKey }: Transaction, keyName: Uint8Array): boolean {
  return tsigKey !== undefined && nameKey(tsigKey.name) === nameKey(keyName)
}

/** Returns the serial of the SOA in the answer section; -1 = no SOA. */
function announcedSerial({ packet, packetOctets }: Query): number {
  const message = parseMessage(packet.subarray(0, packetOctets))
  const soa = message?.answer[0]
  return soa?.type === RRType.SOA && soa.rdata.length >= 22 ? soaSerial(soa) : -1
}

function printNotice({ index, serial, host }: Notice): string {
  return `${index} ${serial} ${host}`
}

export function scanNotice(text: string): Notice {
  const [index, serial, host = ''] = text.split(' ')
  return { index: Number(index), serial: Number(serial), host }
}
