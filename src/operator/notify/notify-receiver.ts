import type { Clock } from '../../base/clock.ts'
import type { RefusalLog } from '../../base/telemetry/refusal-log.ts'
import { Opcode, Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import { HEADER_OCTETS, parseQuery } from '../../dns/message/parse-query.ts'
import { ParseStatus, type Query } from '../../dns/message/query.ts'
import { equalNames } from '../../dns/name/name.ts'
import { type Cidr, isInNetwork, printAddress } from '../../dns/text/address.ts'
import { TsigKeyring } from '../../dns/tsig/key.ts'
import { parseTsig } from '../../dns/tsig/record.ts'
import {
  BADSIG,
  printTsigError,
  type VerifiedRequest,
  verifyRequest,
} from '../../dns/tsig/verify-request.ts'
import { TokenBucket } from '../../kube/token-bucket.ts'
import { KDRNT_ZONE } from '../../records/local-zone.ts'
import { DigestBudget } from './digest-budget.ts'
import type { KeyIndex } from './key-index.ts'
import type { HastenOutcome, NotifyOutcome } from './outcome.ts'

/** The sender of a NOTIFY, as far as it is known. */
export interface NotifySource {
  /** Canonical form. It may be forged unless the NOTIFY is signed. */
  readonly host: string
  /** See `ProviderKey`; '' = not signed. */
  readonly keyId: string
  /** The sender is in a network of `--notify-allow`. */
  readonly isAllowed: boolean
}

interface NotifyReceiverParts {
  readonly clock: Clock
  readonly keys: Pick<KeyIndex, 'named'>
  /** Networks from which unsigned NOTIFYs are accepted for all peers. */
  readonly allowed: readonly Cidr[]
  /** Queries the peers that the NOTIFY may concern. */
  readonly hasten: (sender: NotifySource) => HastenOutcome
  readonly count: (outcome: NotifyOutcome) => void
  readonly refusals: Pick<RefusalLog, 'note'>
  /** Any 32-bit integer that senders don't know. */
  readonly seed: number
}

/** Room for any reply: header, question, and a TSIG record with two names and the longest MAC. */
export const NOTIFY_REPLY_OCTETS = 1024
/** Longest NOTIFY in octets: a question, an SOA and a TSIG record. */
const PACKET_OCTETS_MAX = 1536
/**
 * Replies at once and per second, for each of the two kinds. Peers are polled every second even if
 * a NOTIFY is lost.
 */
const GENUINE_MAX = 200
const REFUSED_MAX = 100
const NO_KEYS = new TsigKeyring()

/** An OPT record of EDNS version 0 without options, payload size 1232 octets. RFC 6891 section 6.1.2. */
const OPT = Uint8Array.of(0, 0, RRType.OPT, 1232 >> 8, 1232 & 0xff, 0, 0, 0, 0, 0, 0)
/** The octet of the OPT record that holds the upper eight bits of the rcode. RFC 6891 section 6.1.3. */
const OPT_RCODE_OFFSET = 5

const FLAG_QR = 0x80
const FLAG_AA = 0x04
const FLAG_RD = 0x01

/**
 * Processes the packets that arrive at the port for NOTIFYs (RFC 1996), from any sender. A NOTIFY
 * only causes an earlier poll of known peers, so a forged one gains nothing:
 *
 *     signed with a provider's key ─▶ all peers with that key
 *     from a network of --notify-allow ─▶ all peers
 *     from the address of a peer ─▶ that peer, even if it has a key: its replies must be signed
 *     anything else ─▶ refused
 *
 * A reply is never longer than its request, and the number of replies per second is limited.
 */
export class NotifyReceiver {
  readonly #parts: NotifyReceiverParts
  readonly #genuine: TokenBucket
  readonly #refused: TokenBucket
  readonly #digests: DigestBudget

  constructor(parts: NotifyReceiverParts) {
    this.#parts = parts
    const perSecond = (most: number): TokenBucket => new TokenBucket(parts.clock, most, 1000 / most)
    this.#genuine = perSecond(GENUINE_MAX)
    this.#refused = perSecond(REFUSED_MAX)
    this.#digests = new DigestBudget(parts.clock, parts.seed)
  }

  /**
   * Writes the reply into `reply`, which has NOTIFY_REPLY_OCTETS, and returns its length; 0 = no
   * reply. `query` is as a transport provides it, with `packet` and the peer filled in.
   */
  serve(query: Query, reply: Uint8Array): number {
    const octets = this.#serve(query, reply)
    return octets > query.packetOctets ? 0 : octets
  }

  #serve(query: Query, reply: Uint8Array): number {
    const { packet, packetOctets } = query
    if (packetOctets > PACKET_OCTETS_MAX) return this.#drop('malformed')
    const status = parseQuery(query, packet, packetOctets)
    if (status === ParseStatus.Ignore) return this.#drop('malformed')
    if (status === ParseStatus.NotImp) return this.#refuse(query, reply, 'other', Rcode.NOTIMP)
    if (status === ParseStatus.BadVers) return this.#refuse(query, reply, 'other', Rcode.BADVERS)
    if (status !== ParseStatus.Ok) return this.#refuse(query, reply, 'malformed', Rcode.FORMERR)
    if (!isForKdrnt(query)) return this.#refuse(query, reply, 'other', Rcode.REFUSED)
    return query.tsigOffset === 0
      ? this.#take(query, reply, '', undefined)
      : this.#takeSigned(query, reply)
  }

  #takeSigned(query: Query, reply: Uint8Array): number {
    const found = this.#verify(query)
    if (found === 'dropped') return this.#drop(found)
    if (found === undefined) return this.#refuse(query, reply, 'malformed', Rcode.FORMERR)
    const { verified, keyId } = found
    if (verified.error === 0) return this.#take(query, reply, keyId, verified)
    const why = `invalid signature: ${printTsigError(verified.error)}`
    this.#parts.refusals.note(hostOf(query), why)
    const octets = this.#refuse(query, reply, 'bad_signature', Rcode.NOTAUTH)
    return octets === 0 ? 0 : this.#sign(reply, octets, verified)
  }

  /**
   * Undefined = the TSIG record is malformed. A NOTIFY that names no key of ours costs no digest
   * and uses no other sender's budget.
   */
  #verify(query: Query): { verified: VerifiedRequest; keyId: string } | 'dropped' | undefined {
    const { packet, packetOctets, tsigOffset } = query
    const record = parseTsig(packet, tsigOffset, packetOctets)
    if (record === undefined) return undefined
    const nowSeconds = Math.floor(this.#parts.clock.now() / 1000)
    const verify = (keyring: TsigKeyring): VerifiedRequest | undefined =>
      verifyRequest(packet, tsigOffset, packetOctets, keyring, nowSeconds)
    const keys = this.#parts.keys.named(record.keyName)
    const host = keys.length === 0 ? '' : hostOf(query)
    if (keys.length > 0 && !this.#digests.take(query, host)) return 'dropped'
    let last: VerifiedRequest | undefined
    for (const { id, keyring } of keys) {
      last = verify(keyring)
      if (last === undefined) return undefined
      if (last.error === 0) this.#digests.noteGood(host)
      if (last.error !== BADSIG) return { verified: last, keyId: id }
    }
    last ??= verify(NO_KEYS)
    return last === undefined ? undefined : { verified: last, keyId: '' }
  }

  #take(
    query: Query,
    reply: Uint8Array,
    keyId: string,
    verified: VerifiedRequest | undefined,
  ): number {
    const { peerAddress, peerFamily } = query
    const isAllowed = this.#parts.allowed.some(
      (network) => network.family === peerFamily && isInNetwork(peerAddress, network),
    )
    const host = hostOf(query)
    const outcome = this.#parts.hasten({ host, keyId, isAllowed })
    if (outcome === 'stranger') {
      this.#parts.refusals.note(host, 'not a nameserver of a provider Secret')
      return this.#refuse(query, reply, outcome, Rcode.REFUSED)
    }
    this.#parts.count(outcome)
    if (!this.#genuine.take()) return 0
    const octets = compose(query, reply, Rcode.NOERROR)
    return verified === undefined ? octets : this.#sign(reply, octets, verified)
  }

  #sign(reply: Uint8Array, octets: number, { signer }: VerifiedRequest): number {
    if (octets + signer.octets > NOTIFY_REPLY_OCTETS) return 0
    return signer.sign(reply, octets, Math.floor(this.#parts.clock.now() / 1000))
  }

  #refuse(query: Query, reply: Uint8Array, outcome: NotifyOutcome, rcode: number): number {
    this.#parts.count(outcome)
    return this.#refused.take() ? compose(query, reply, rcode) : 0
  }

  #drop(outcome: NotifyOutcome): number {
    this.#parts.count(outcome)
    return 0
  }
}

function isForKdrnt({ opcode, qtype, qclass, qname, qnameOctets }: Query): boolean {
  if (opcode !== Opcode.NOTIFY || qtype !== RRType.SOA || qclass !== RRClass.IN) return false
  return equalNames(qname.subarray(0, qnameOctets), KDRNT_ZONE)
}

/**
 * Composes a reply of the received header and question, with EDNS if the query had it. It is never
 * longer than the packet. Returns the length.
 */
function compose(query: Query, reply: Uint8Array, rcode: number): number {
  const { packet, questionOctets, opcode, hasEdns } = query
  const octets = HEADER_OCTETS + questionOctets
  for (let i = 0; i < octets; i++) reply[i] = packet[i]!
  const authoritative = rcode === Rcode.NOERROR ? FLAG_AA : 0
  reply[2] = FLAG_QR | (opcode << 3) | authoritative | (packet[2]! & FLAG_RD)
  reply[3] = rcode & 0x0f
  reply.fill(0, 4, HEADER_OCTETS)
  if (questionOctets > 0) reply[5] = 1
  if (!hasEdns) return octets
  // RFC 6891 section 6.1.1.
  reply[11] = 1
  reply.set(OPT, octets)
  reply[octets + OPT_RCODE_OFFSET] = rcode >> 4
  return octets + OPT.length
}

function hostOf({ peerAddress, peerFamily }: Query): string {
  return printAddress(peerAddress, peerFamily === 1 ? 1 : 2)
}
