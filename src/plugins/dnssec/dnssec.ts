import { Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import { Opcode } from '../../dns/iana/opcodes.ts'
import { Protocol } from '../../dns/message/query.ts'
import type { Response } from '../../dns/message/response.ts'
import { Section } from '../../dns/message/section.ts'
import { DROP, type Handler, Link, PASS, Trait } from '../../plugin/handler.ts'
import { isUnwritten } from '../../plugin/status.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import type { ZoneKeys } from '../../signing/zone-keys.ts'
import type { ReplySigning } from './reply-signing.ts'
import type { LinkedZone, SigningZones } from './signing-zones.ts'

/** Rcodes of replies with records that are signed. */
const SIGNED_RCODES: readonly number[] = [Rcode.NOERROR, Rcode.NXDOMAIN, Rcode.YXDOMAIN]
/** Extended errors (RFC 8914). */
const EDE_OTHER = 0
const EDE_NOT_READY = 14
/** RFC 9824 section 3.5. */
const EDE_INVALID_QUERY_TYPE = 30
const LIMIT_TEXT = new Uint8Array(Buffer.from('limit of new signatures'))
const CLOCK_TEXT = new Uint8Array(Buffer.from('the clock of the server is wrong'))

/**
 * Answers for the keys of the zones that it signs on demand, and signs the replies of the links below:
 *
 *     before   DNSKEY, CDS, CDNSKEY of an apex
 *     after    query has DO ─▶ RRsets without signatures ─▶ cache of signatures ─▶ new signature, if the budget allows
 *
 * Queries without DO for other types never reach it (`Trait.Dnssec`).
 */
export class Dnssec extends Link {
  readonly name = 'dnssec'
  readonly #zones: SigningZones
  readonly #signing: ReplySigning

  constructor(next: Handler, zones: SigningZones, signing: ReplySigning) {
    super(next, Trait.Dnssec, Trait.Dnssec)
    this.#zones = zones
    this.#signing = signing
  }

  /** @hot */
  override before(tx: Transaction): number {
    const { query } = tx
    const { qtype } = query
    const isOfKeys = qtype === RRType.DNSKEY || qtype === RRType.CDS || qtype === RRType.CDNSKEY
    if (!isOfKeys && qtype !== RRType.NXNAME) return PASS
    if (query.opcode !== Opcode.QUERY || query.qclass !== RRClass.IN) return PASS
    const zone = this.#zones.find(query)
    if (zone === undefined) return PASS
    if (qtype === RRType.NXNAME) return query.dnssecOk ? refuseMetaType(tx) : PASS
    if (zone.isClaimed || query.labelCount !== zone.labels) return PASS
    return this.#answerKeys(tx, zone)
  }

  /** @hot */
  override after(tx: Transaction, status: number): number {
    if (!wantsSignatures(tx, status)) return status
    const zone = this.#zones.find(tx.query)
    return zone === undefined ? status : signReply(tx, zone, this.#signing)
  }

  #answerKeys(tx: Transaction, zone: LinkedZone): number {
    const { query, response } = tx
    const { keys } = zone
    if (keys === undefined) return failWithoutKeys(tx)
    const records = recordsOf(keys, query.qtype)
    // The links below know what else the apex has, for the proof.
    if (records.length === 0) return PASS
    response.authoritative = true
    response.rcode = Rcode.NOERROR
    response.answeredBy = this.name
    response.imputedLabel = 0
    const ttl = keys.dnskeyTtlSeconds
    const { qname, qtype } = query
    for (const rdata of records) {
      response.add(Section.Answer, qname, 0, qtype, RRClass.IN, ttl, rdata, 0, rdata.length)
    }
    if (!query.dnssecOk) return Rcode.NOERROR
    if (!this.#signing.signKeys(tx, zone)) return refuseFor(tx, this.#signing)
    if (query.compactOk) response.isCompact = true
    return Rcode.NOERROR
  }
}

/** Signs again the replies that links above `Dnssec` changed, also of zones that a source signs in its image. */
export class ChangedReplies extends Link {
  readonly name = 'dnssec'
  readonly #zones: SigningZones
  readonly #signing: ReplySigning

  constructor(next: Handler, zones: SigningZones, signing: ReplySigning) {
    super(next, 0, Trait.Dnssec)
    this.#zones = zones
    this.#signing = signing
  }

  /** @hot */
  override after(tx: Transaction, status: number): number {
    if (!tx.response.needsSigning || !wantsSignatures(tx, status)) return status
    const zone = this.#zones.findAny(tx.query)
    return zone === undefined ? status : signReply(tx, zone, this.#signing)
  }
}

function wantsSignatures({ query, response, server, stream }: Transaction, status: number) {
  if (!query.dnssecOk || query.qclass !== RRClass.IN || query.opcode !== Opcode.QUERY) return false
  if (status === DROP || isUnwritten(status) || server.isHandingOver) return false
  return stream === undefined && SIGNED_RCODES.includes(response.rcode)
}

function signReply(tx: Transaction, zone: LinkedZone, signing: ReplySigning): number {
  const { query, response } = tx
  if (zone.keys === undefined) return failWithoutKeys(tx)
  response.expand(query)
  if (!signing.sign(tx, zone)) return refuseFor(tx, signing)
  if (query.compactOk) response.isCompact = true
  return Rcode.NOERROR
}

function refuseFor(tx: Transaction, { clockFault }: ReplySigning): number {
  return clockFault === '' ? refuse(tx) : failWithoutTime(tx, clockFault)
}

function recordsOf(keys: ZoneKeys, qtype: number): readonly Uint8Array[] {
  if (qtype === RRType.DNSKEY) return keys.dnskeys
  return qtype === RRType.CDS ? keys.cds : keys.cdnskeys
}

function failWithoutKeys({ response }: Transaction): number {
  keepOutOfCaches(response)
  response.edeCode = EDE_NOT_READY
  response.error = 'the zone has no usable keys yet'
  return Rcode.SERVFAIL
}

/** Signatures with a wrong time would be invalid for all clients. */
function failWithoutTime({ response }: Transaction, fault: string): number {
  response.startOver()
  keepOutOfCaches(response)
  response.edeCode = EDE_OTHER
  response.edeText = CLOCK_TEXT
  response.error = fault
  return Rcode.SERVFAIL
}

function refuseMetaType({ response }: Transaction): number {
  response.edeCode = EDE_INVALID_QUERY_TYPE
  return Rcode.FORMERR
}

/**
 * Replies when no more signatures may be made. Over UDP, the address of the client may be forged: it gets an empty
 * truncated reply, and repeats the query over TCP, which has a limit of its own.
 */
function refuse({ query, response }: Transaction): number {
  response.startOver()
  keepOutOfCaches(response)
  if (query.protocol === Protocol.Udp) {
    response.truncated = true
    return Rcode.NOERROR
  }
  response.edeCode = EDE_OTHER
  response.edeText = LIMIT_TEXT
  response.error = 'the limit of new signatures is reached'
  return Rcode.SERVFAIL
}

/** A failure of this server concerns one moment: caches of links above must not keep it. */
function keepOutOfCaches(response: Response): void {
  response.isSteered = true
}
