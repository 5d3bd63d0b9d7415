import * as opcodes from '../iana/opcodes.ts'
import { RRType } from '../iana/types.ts'
import type { ReplySigner } from '../tsig/reply-signer.ts'
import { ALIASES_MAX, DirectAnswer } from './direct-answer.ts'
import { expandDirect } from './expand-direct.ts'
import type { Query } from './query.ts'
import type { Section } from './section.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { Opcode } = opcodes

/** Maximum of records of one response: 65535 octets hold fewer, even of the smallest kind. */
export const RESPONSE_RR_MAX = 6000

/** Initial capacity of a response: enough for almost every answer, small enough to pool. */
const RESPONSE_RR_START = 64

/** UDP payload size that fits all common paths without fragmentation (DNS flag day 2020). */
export const PAYLOAD_OCTETS_DEFAULT = 1232

const NAME_OCTETS_MAX = 255

const NO_BYTES = new Uint8Array(0)

/**
 * The answer to one query before it is encoded: a list of records that point into zone images or
 * static buffers. Plugins can reorder, drop and count records without changing encoded data.
 * Reused: call `reset` before each query. Parallel arrays, one entry per record, in order of
 * addition; `compose` writes them section by section.
 */
export class Response {
  rcode = 0
  authoritative = false
  recursionAvailable = false
  authenticData = false
  recursionDesired = false
  checkingDisabled = false
  truncated = false

  /** A bit for each section that may have records: 1 << Section. */
  sections = 0
  /** Records so far: 0..RESPONSE_RR_MAX. The arrays below grow with it: load them again after `add`. */
  count = 0
  section: Uint8Array = new Uint8Array(RESPONSE_RR_START)
  type: Uint16Array = new Uint16Array(RESPONSE_RR_START)
  rrclass: Uint16Array = new Uint16Array(RESPONSE_RR_START)
  ttlSeconds: Uint32Array = new Uint32Array(RESPONSE_RR_START)
  /** Owner i: uncompressed wire name at `ownerBytes[i][ownerOffset[i]]`. */
  readonly ownerBytes: Uint8Array[] = new Array(RESPONSE_RR_START).fill(NO_BYTES)
  ownerOffset: Uint32Array = new Uint32Array(RESPONSE_RR_START)
  /** Rdata i, uncompressed: `rdataBytes[i]` at rdataOffset[i], rdataOctets[i] long. */
  readonly rdataBytes: Uint8Array[] = new Array(RESPONSE_RR_START).fill(NO_BYTES)
  rdataOffset: Uint32Array = new Uint32Array(RESPONSE_RR_START)
  rdataOctets: Uint16Array = new Uint16Array(RESPONSE_RR_START)

  /**
   * The answer in its direct form, which is sent before the records above. The arrays above do not
   * contain it; `expand` moves it there.
   */
  readonly direct: DirectAnswer = new DirectAnswer()

  /**
   * Names that no other buffer contains, such as targets of CNAMEs made from a DNAME. They live as
   * long as the records that point to them. In use: 0..synthesizedOctets-1.
   */
  readonly synthesized: Uint8Array = new Uint8Array((ALIASES_MAX + 1) * NAME_OCTETS_MAX)
  synthesizedOctets = 0

  /** ECS scope to echo if the query carried ECS: 0..128 bits (RFC 7871 section 7.2.1). */
  scopeBits = 0
  /** True if another client, or the same one later, may get another answer to the same question. */
  isSteered = false
  /** Sets the flag CO: the reply is from a zone with compact denial, and the query has CO (RFC 9824 section 5.1). */
  isCompact = false
  /** The denied name exists in a zone, but has no records there: names below it have some, or its wildcard has none. */
  isEmptyName = false
  /** A link changed the answer after a link below signed it: its signatures and proofs are not valid. */
  needsSigning = false
  /** NSID to return if the client requests it (RFC 5001); null = none configured. */
  nsid: Uint8Array | null = null
  /** Agent that wants reports of errors (RFC 9567), a wire name; null = none. */
  reportAgent: Uint8Array | null = null
  /** Labels of the zone that `zoneSerial` is the version of (RFC 9660), without the root; -1 = none is known. */
  zoneLabels = -1
  /** Serial of its SOA. */
  zoneSerial = 0
  /** Extended error (RFC 8914): info code, or -1 for none; extra text as UTF-8. */
  edeCode = -1
  edeText: Uint8Array = NO_BYTES
  /** The server's UDP payload size in the OPT record; set from `bufsize`. */
  payloadOctets: number = PAYLOAD_OCTETS_DEFAULT
  /** Server cookie to return after the client's (RFC 7873); meaningful if `serverCookieOctets` is 16. */
  readonly serverCookie: Uint8Array = new Uint8Array(16)
  serverCookieOctets = 0
  /** Idle timeout to send (RFC 7828) in units of 100 ms: 0..65535, or -1 for none. */
  keepaliveDeciseconds = -1
  /** True to send an OPT even to a client that sent none (CoreDNS's acl does so). */
  forceEdns = false
  /** Signs the reply (RFC 8945); null = the reply is unsigned. */
  signer: ReplySigner | null = null
  /**
   * First label of the common suffix of all names that would get such a reply: 0 = the qname
   * itself, `labelCount` = the root. It is a zone's apex for NXDOMAIN, the delegated name, the
   * closest encloser of a wildcard, or a DNAME's owner.
   */
  imputedLabel = 0
  /** True if the first answer is a CNAME record that leads to another name of the client's search path. */
  isSearched = false
  /** Name of the plugin that answered, for metrics; '' = the server itself. */
  answeredBy = ''
  /** Error message for the `errors` plugin; '' = no error. */
  error = ''

  /** Removes all records. */
  clear(): void {
    this.count = 0
    this.direct.clear()
  }

  /** Removes what the links below wrote, before they serve again. What links above wrote (options, signer) is kept. */
  startOver(): void {
    this.clear()
    this.sections = 0
    this.synthesizedOctets = 0
    this.rcode = 0
    this.authoritative = false
    this.authenticData = false
    this.truncated = false
    this.isEmptyName = false
    this.needsSigning = false
    this.isSearched = false
    this.edeCode = -1
    this.error = ''
    this.zoneLabels = -1
  }

  /** Moves a direct answer to the records. It must be the only answer. Returns the index of its last CNAME, or -1. */
  expand(query: Query): number {
    return expandDirect(this.direct, this, query)
  }

  reset(query: Query): void {
    this.rcode = 0
    this.authoritative = false
    this.recursionAvailable = false
    this.authenticData = false
    // Only in queries do these bits have a meaning that the reply copies (RFC 6895 section 2).
    const flags = query.opcode === Opcode.QUERY ? query.flags : 0
    this.recursionDesired = (flags & 0x0100) !== 0
    this.checkingDisabled = (flags & 0x0010) !== 0
    this.truncated = false
    this.sections = 0
    this.clear()
    this.synthesizedOctets = 0
    this.scopeBits = 0
    this.isSteered = false
    this.isCompact = false
    this.isEmptyName = false
    this.needsSigning = false
    this.isSearched = false
    this.nsid = null
    this.reportAgent = null
    this.zoneLabels = -1
    this.edeCode = -1
    this.edeText = NO_BYTES
    this.payloadOctets = PAYLOAD_OCTETS_DEFAULT
    this.serverCookieOctets = 0
    this.keepaliveDeciseconds = -1
    this.forceEdns = false
    this.signer = null
    this.imputedLabel = 0
    this.answeredBy = ''
    this.error = ''
  }

  /**
   * Adds one record with `octets` octets of rdata at `rdata[rdataOffset]`. Above RESPONSE_RR_MAX it
   * drops the record and sets `truncated`. An owner that is `query.qname` at offset 0 takes two
   * octets.
   */
  add(
    section: Section,
    owner: Uint8Array,
    ownerOffset: number,
    type: number,
    rrclass: number,
    ttlSeconds: number,
    rdata: Uint8Array,
    rdataOffset: number,
    octets: number,
  ): void {
    const i = this.count
    if (i >= RESPONSE_RR_MAX) {
      this.truncated = true
      return
    }
    if (i >= this.section.length) this.#grow()
    this.sections |= 1 << section
    this.section[i] = section
    this.type[i] = type
    this.rrclass[i] = rrclass
    this.ttlSeconds[i] = ttlSeconds
    this.ownerBytes[i] = owner
    this.ownerOffset[i] = ownerOffset
    this.rdataBytes[i] = rdata
    this.rdataOffset[i] = rdataOffset
    this.rdataOctets[i] = octets
    this.count = i + 1
  }

  /** Writes record `from` over record `to`. */
  move(from: number, to: number): void {
    if (from === to) return
    this.section[to] = this.section[from]!
    this.type[to] = this.type[from]!
    this.rrclass[to] = this.rrclass[from]!
    this.ttlSeconds[to] = this.ttlSeconds[from]!
    this.ownerBytes[to] = this.ownerBytes[from]!
    this.ownerOffset[to] = this.ownerOffset[from]!
    this.rdataBytes[to] = this.rdataBytes[from]!
    this.rdataOffset[to] = this.rdataOffset[from]!
    this.rdataOctets[to] = this.rdataOctets[from]!
  }

  #grow(): void {
    const capacity = Math.min(this.section.length * 2, RESPONSE_RR_MAX)
    this.section = copied(new Uint8Array(capacity), this.section)
    this.type = copied(new Uint16Array(capacity), this.type)
    this.rrclass = copied(new Uint16Array(capacity), this.rrclass)
    this.ttlSeconds = copied(new Uint32Array(capacity), this.ttlSeconds)
    this.ownerOffset = copied(new Uint32Array(capacity), this.ownerOffset)
    this.rdataOffset = copied(new Uint32Array(capacity), this.rdataOffset)
    this.rdataOctets = copied(new Uint16Array(capacity), this.rdataOctets)
    while (this.ownerBytes.length < capacity) this.ownerBytes.push(NO_BYTES)
    while (this.rdataBytes.length < capacity) this.rdataBytes.push(NO_BYTES)
  }
}

/**
 * Returns the type of record `i`; for a signature, the type that it covers. An RRset and its
 * signatures have the same result.
 */
export function signedType(response: Response, i: number): number {
  const type = response.type[i]!
  if (type !== RRType.RRSIG || response.rdataOctets[i]! < 2) return type
  const rdata = response.rdataBytes[i]!
  const at = response.rdataOffset[i]!
  return (rdata[at]! << 8) | rdata[at + 1]!
}

/** True if record `i` is, or signs, a SOA, NSEC or NSEC3: the records that prove absence. */
export function isProof(response: Response, i: number): boolean {
  const type = signedType(response, i)
  return type === RRType.SOA || type === RRType.NSEC || type === RRType.NSEC3
}

function copied<T extends Uint8Array | Uint16Array | Uint32Array>(into: T, from: T): T {
  into.set(from)
  return into
}
