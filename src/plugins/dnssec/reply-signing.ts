import { hasNxname } from '../../dns/dnssec/denial-rdata.ts'
import { Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import type { Response } from '../../dns/message/response.ts'
import { Section } from '../../dns/message/section.ts'
import { NameBuffer } from '../../dns/name/hashed-name.ts'
import { equalNamesAt, nameOctetsAt } from '../../dns/name/name-at.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { CHAIN_DEPTH_MAX } from '../../plugin/transaction.ts'
import { Proof } from './compact-denial.ts'
import { findSignature, isSameSet, type ResponseSigner } from './response-signer.ts'
import type { LinkedZone, SigningZones } from './signing-zones.ts'

/** RRsets of a reply that are signed; those of the additional section after them stay without signatures. */
const SETS_MAX = 64
/** Octets of SOA rdata after both names. */
const SOA_NUMBERS_OCTETS = 20
const HOSTMASTER = Buffer.from('\x0ahostmaster', 'latin1')
/** Refresh, retry and expire of a SOA that the link makes: no server transfers such a zone. */
const SOA_TIMES = [7200, 1800, 86_400] as const
const SOA_TTL_SECONDS = 60

/** A name in the octets of a record, or the qname. */
interface NameAt {
  readonly owner: Uint8Array
  readonly at: number
}

/**
 * Signs a reply of the links below:
 *
 *     answer, authority, additional   RRsets of the zone without a signature
 *     referral                        NS stays unsigned; a proof if there is no DS
 *     no data, no name                SOA and one NSEC record (RFC 9824); NXDOMAIN becomes NOERROR without CO
 *
 * In a zone that a source signs in its image, only answers of wildcards and the denial. `isChanged`: replies that a
 * link changed after they were signed; their signatures and proofs are replaced.
 */
export class ReplySigning {
  readonly #zones: SigningZones
  readonly #signer: ResponseSigner
  readonly #isChanged: boolean
  readonly #knowsEmpty: boolean
  /** The rcode is NOERROR, but a proof that was removed means that the qname does not exist. */
  #isMissing = false
  readonly #name = new NameBuffer()

  /** `knowsEmpty`: a name that `isEmptyName` is set for has no records of other links either. */
  constructor(
    zones: SigningZones,
    signer: ResponseSigner,
    { isChanged = false, knowsEmpty = false } = {},
  ) {
    this.#zones = zones
    this.#signer = signer
    this.#isChanged = isChanged
    this.#knowsEmpty = knowsEmpty
  }

  /** Why the clock did not allow a signature, after a call returned false; '' = the limit was reached. */
  get clockFault(): string {
    return this.#signer.clockFault
  }

  /** Signs the key records in the answer, whatever the limit is. Returns false if the clock is wrong. */
  signKeys(tx: Transaction, zone: LinkedZone): boolean {
    return this.#signer.signSetOf(tx, zone, 0, true)
  }

  /** Returns false if the limit of new signatures is reached, or the clock is wrong: the reply is incomplete then. */
  sign(tx: Transaction, zone: LinkedZone): boolean {
    const { response } = tx
    this.#isMissing = false
    if (this.#isChanged) this.#dropSignatures(tx)
    else if (zone.isClaimed) dropWildcardSignatures(response)
    dropAlias(tx)
    // The records that the link adds need no second look.
    const { count } = response
    const cut = findCut(response, zone)
    if (!this.#signSets(tx, count, cut)) return false
    if (hasProof(response)) return true
    if (cut !== -1) return this.#proveInsecure(tx, zone, cut)
    return this.#deny(tx, zone)
  }

  #signSets(tx: Transaction, count: number, cut: number): boolean {
    const { response } = tx
    let sets = 0
    for (let i = 0; i < count; i++) {
      if (!isSignable(response, i) || isBelowCut(response, i, cut)) continue
      if (!isFirstOfSet(response, i) || findSignature(response, i) !== -1) continue
      const zone = this.#zoneOf(response.ownerBytes[i]!, response.ownerOffset[i]!)
      if (zone?.keys === undefined) continue
      if (!this.#isChanged && isOfImage(zone, response, i)) continue
      const isExtra = response.section[i] === Section.Additional
      if (++sets > SETS_MAX) return isExtra
      if (!this.#signer.signSetOf(tx, zone, i, false) && !isExtra) return false
    }
    return true
  }

  #zoneOf(owner: Uint8Array, at: number): LinkedZone | undefined {
    const name = this.#name
    if (!name.set(owner, at, owner.length)) return undefined
    return this.#isChanged ? this.#zones.findAny(name) : this.#zones.find(name)
  }

  /**
   * Removes signatures and proofs of the zones that are signed here. If the answer is of them, also removes records of
   * other zones from the authority section: the SOA and NS of the name that the links below were asked for.
   */
  #dropSignatures(tx: Transaction): void {
    const { query, response } = tx
    const end = findChainEnd(tx)
    const isOurs = this.#zoneOf(end.owner, end.at)?.keys !== undefined
    // A reply with an alias may have the proof of a name that is not in it any more.
    const isOfQname = end.owner === query.qname && !query.compactOk
    let kept = 0
    for (let i = 0; i < response.count; i++) {
      if (!this.#isInvalid(response, i, isOurs)) response.move(i, kept++)
      else if (isOfQname && provesNoName(response, i)) this.#isMissing = true
    }
    response.count = kept
  }

  #isInvalid(response: Response, i: number, isOurs: boolean): boolean {
    const owner = response.ownerBytes[i]!
    const at = response.ownerOffset[i]!
    const type = response.type[i]!
    const zone = this.#zoneOf(owner, at)
    if (zone?.keys === undefined) return isOurs && response.section[i] === Section.Authority
    if (type === RRType.SOA) return nameOctetsAt(owner, at) !== zone.apex.length
    return type === RRType.RRSIG || type === RRType.NSEC || type === RRType.NSEC3
  }

  /** Proves that the delegation at record `cut` has no DS. */
  #proveInsecure(tx: Transaction, zone: LinkedZone, cut: number): boolean {
    const { response } = tx
    if (hasDs(response, cut)) return true
    const name = {
      owner: response.ownerBytes[cut]!,
      at: response.ownerOffset[cut]!,
      ttlSeconds: response.ttlSeconds[cut]!,
    }
    return this.#signer.addProof(tx, zone, Section.Authority, name, Proof.Insecure)
  }

  /** Proves what the reply denies, if it denies something in our zones. */
  #deny(tx: Transaction, first: LinkedZone): boolean {
    const { query, response } = tx
    const end = findChainEnd(tx)
    if (!isDenial(tx, end)) return true
    const isQname = end.owner === query.qname
    const zone = isQname ? first : this.#zoneOf(end.owner, end.at)
    if (zone?.keys === undefined) return true
    const isApex = nameOctetsAt(end.owner, end.at) === zone.apex.length
    const exists = (response.rcode !== Rcode.NXDOMAIN && !this.#isMissing) || isApex
    const soa = this.#useSoa(tx, zone)
    if (soa === -1) return false
    // The SOA that the link made answers for itself.
    if (isApex && query.qtype === RRType.SOA) return true
    const ttlSeconds = negativeTtl(response, soa)
    const isAnswer = isAnsweredByProof(tx, exists)
    const section = isAnswer ? Section.Answer : Section.Authority
    const proof = this.#proofOf(tx, end, exists, isApex)
    const added = response.count
    if (!this.#signer.addProof(tx, zone, section, { ...end, ttlSeconds }, proof)) return false
    if (isAnswer && query.qtype === RRType.RRSIG) dropRecord(response, added)
    if (exists) response.rcode = Rcode.NOERROR
    else if (!query.compactOk) response.rcode = Rcode.NOERROR
    // Caches above the link do not distinguish queries by CO.
    else response.isSteered = true
    return true
  }

  #proofOf(tx: Transaction, end: NameAt, exists: boolean, isApex: boolean): number {
    const { qtype } = tx.query
    if (!exists) return Proof.NoName
    if (this.#knowsEmpty && tx.response.isEmptyName) return Proof.Empty
    if (qtype === RRType.NSEC || qtype === RRType.RRSIG || qtype === RRType.ANY) return Proof.Name
    return qtype === RRType.DS && !isApex && this.#isDelegation(tx, end) ? Proof.Insecure : qtype
  }

  /** True if the name has NS records: without DS, it is an insecure delegation. */
  #isDelegation(tx: Transaction, { owner, at }: NameAt): boolean {
    const name = this.#name
    name.set(owner, at, owner.length)
    const qname = name.qname.slice(0, name.qnameOctets)
    const asked = tx.server.lookupInternally(tx, qname, RRType.NS)
    // A source that waits for another server is not zone data, and has no delegations of this zone.
    if (asked instanceof Promise) void asked.then((late) => late?.server.release(late))
    if (asked === undefined || asked instanceof Promise) return false
    const found = findNs(asked.response, qname) !== -1
    tx.server.release(asked)
    return found
  }

  /** Returns the index of the SOA of the zone in the reply, signed; adds one if the source has none. -1 = limit. */
  #useSoa(tx: Transaction, zone: LinkedZone): number {
    const { query, response } = tx
    const existing = findSoa(response, this.#isChanged ? zone.apex : undefined)
    if (existing !== -1) return existing
    const at = response.count
    const isAnswer = query.qtype === RRType.SOA && query.labelCount === zone.labels
    const section = isAnswer ? Section.Answer : Section.Authority
    const { apex } = zone
    const soa = (zone.isClaimed ? askSoa(tx, apex) : undefined) ?? (zone.soa ??= composeSoa(apex))
    const { length } = soa
    response.add(section, apex, 0, RRType.SOA, RRClass.IN, SOA_TTL_SECONDS, soa, 0, length)
    return this.#signer.signSetOf(tx, zone, at, true) ? at : -1
  }
}

/** True for the record of compact denial that a link below made in place of NXDOMAIN. */
function provesNoName(
  { type, rdataBytes, rdataOffset, rdataOctets }: Response,
  i: number,
): boolean {
  if (type[i] !== RRType.NSEC) return false
  return hasNxname(rdataBytes[i]!, rdataOffset[i]!, rdataOctets[i]!)
}

function isSignable({ rrclass, type }: Response, i: number): boolean {
  return rrclass[i] === RRClass.IN && type[i] !== RRType.RRSIG && type[i] !== RRType.OPT
}

function isFirstOfSet(response: Response, i: number): boolean {
  for (let k = 0; k < i; k++) if (isSameSet(response, k, i)) return false
  return true
}

/** True if the image of a source has signed the set, or leaves it unsigned on purpose. */
function isOfImage(zone: LinkedZone, response: Response, i: number): boolean {
  return zone.isClaimed && response.section[i] !== Section.Answer
}

/** Returns the index of the first NS record of a referral; -1 = the reply is not a referral. */
function findCut(response: Response, zone: LinkedZone): number {
  if (response.rcode !== Rcode.NOERROR || findSoa(response) !== -1) return -1
  for (let i = 0; i < response.count; i++) {
    if (response.section[i] !== Section.Authority || response.type[i] !== RRType.NS) continue
    const owner = response.ownerBytes[i]!
    const at = response.ownerOffset[i]!
    const below = nameOctetsAt(owner, at) - zone.apex.length
    if (below > 0 && isSuffix(owner, at, below, zone.apex, 0)) return i
  }
  return -1
}

/** True for the NS records of a referral, and for addresses at or below the delegated name. */
function isBelowCut(response: Response, i: number, cut: number): boolean {
  if (cut === -1 || response.section[i] === Section.Answer) return false
  if (response.type[i] === RRType.DS) return false
  const owner = response.ownerBytes[i]!
  const at = response.ownerOffset[i]!
  const octets = nameOctetsAt(owner, at)
  const cutOwner = response.ownerBytes[cut]!
  const cutAt = response.ownerOffset[cut]!
  const below = octets - nameOctetsAt(cutOwner, cutAt)
  return below >= 0 && isSuffix(owner, at, below, cutOwner, cutAt)
}

/** True if the name at `owner[at + below]` is a suffix of the first one, at a label, and equals the other name. */
function isSuffix(
  owner: Uint8Array,
  at: number,
  below: number,
  other: Uint8Array,
  otherAt: number,
): boolean {
  let label = 0
  while (label < below) label += owner[at + label]! + 1
  return label === below && equalNamesAt(owner, at + below, other, otherAt)
}

function hasDs(response: Response, cut: number): boolean {
  for (let i = 0; i < response.count; i++) {
    if (response.section[i] !== Section.Authority || response.type[i] !== RRType.DS) continue
    const { ownerBytes, ownerOffset } = response
    if (equalNamesAt(ownerBytes[i]!, ownerOffset[i]!, ownerBytes[cut]!, ownerOffset[cut]!)) {
      return true
    }
  }
  return false
}

function hasProof(response: Response): boolean {
  for (let i = 0; i < response.count; i++) {
    if (response.section[i] !== Section.Authority) continue
    if (response.type[i] === RRType.NSEC || response.type[i] === RRType.NSEC3) return true
  }
  return false
}

/** Returns the name that the CNAMEs of the answer lead to. */
function findChainEnd({ query, response }: Transaction): NameAt {
  let end: NameAt = { owner: query.qname, at: 0 }
  if (query.qtype === RRType.CNAME || query.qtype === RRType.ANY) return end
  for (let steps = 0; steps <= CHAIN_DEPTH_MAX; steps++) {
    const i = findAnswer(response, end, RRType.CNAME)
    if (i === -1) return end
    end = { owner: response.rdataBytes[i]!, at: response.rdataOffset[i]! }
  }
  return end
}

/** Index of an answer record with that owner and type (ANY = every type); -1 = none. */
function findAnswer(response: Response, { owner, at }: NameAt, type: number): number {
  for (let i = 0; i < response.count; i++) {
    if (response.section[i] !== Section.Answer) continue
    if (type !== RRType.ANY && response.type[i] !== type) continue
    if (equalNamesAt(response.ownerBytes[i]!, response.ownerOffset[i]!, owner, at)) return i
  }
  return -1
}

/** True if the reply means that `end` does not exist, or lacks the type. A chain may also end before its last name. */
function isDenial({ query, response }: Transaction, end: NameAt): boolean {
  if (response.rcode === Rcode.YXDOMAIN) return false
  if (response.rcode === Rcode.NXDOMAIN) return true
  if (findAnswer(response, end, query.qtype) !== -1) return false
  return findSoa(response) !== -1 || end.owner === query.qname
}

/**
 * True if the NSEC record or its signature is the answer. A proof that the name lacks these types would contradict
 * itself. For ANY, it would deny all types of a name whose source does not know ANY.
 */
function isAnsweredByProof({ query }: Transaction, exists: boolean): boolean {
  if (!exists && query.compactOk) return false
  if (query.qtype === RRType.NSEC || query.qtype === RRType.RRSIG) return true
  return query.qtype === RRType.ANY && exists
}

/** Removes an answer that leads elsewhere, if the query is for a type that the owner of a CNAME has itself. */
function dropAlias({ query, response }: Transaction): void {
  if (query.qtype !== RRType.NSEC && query.qtype !== RRType.RRSIG) return
  const first = findAnswer(response, { owner: query.qname, at: 0 }, RRType.ANY)
  // A DNAME above the name comes before the CNAME.
  if (first !== 0 || response.type[0] !== RRType.CNAME) return
  response.count = 0
  response.rcode = Rcode.NOERROR
}

function dropRecord(response: Response, at: number): void {
  for (let i = at + 1; i < response.count; i++) response.move(i, i - 1)
  response.count--
}

/** Index of a SOA in the authority section, of `apex` if that is given; -1 = none. */
function findSoa(response: Response, apex?: Uint8Array): number {
  for (let i = 0; i < response.count; i++) {
    if (response.section[i] !== Section.Authority || response.type[i] !== RRType.SOA) continue
    if (apex === undefined) return i
    if (equalNamesAt(response.ownerBytes[i]!, response.ownerOffset[i]!, apex, 0)) return i
  }
  return -1
}

/** Returns the SOA rdata of a zone that a source has at hand. */
function askSoa(tx: Transaction, apex: Uint8Array): Uint8Array | undefined {
  const asked = tx.server.lookupInternally(tx, apex, RRType.SOA)
  if (asked instanceof Promise) void asked.then((late) => late?.server.release(late))
  if (asked === undefined || asked instanceof Promise) return undefined
  const { response } = asked
  const i = findAnswer(response, { owner: apex, at: 0 }, RRType.SOA)
  const start = i === -1 ? 0 : response.rdataOffset[i]!
  const soa =
    i === -1 ? undefined : response.rdataBytes[i]!.slice(start, start + response.rdataOctets[i]!)
  asked.server.release(asked)
  return soa
}

function findNs(response: Response, name: Uint8Array): number {
  for (let i = 0; i < response.count; i++) {
    if (response.type[i] !== RRType.NS) continue
    if (equalNamesAt(response.ownerBytes[i]!, response.ownerOffset[i]!, name, 0)) return i
  }
  return -1
}

/** The TTL of an NSEC record: the lower one of the SOA's and its minimum (RFC 9077). */
function negativeTtl(response: Response, soa: number): number {
  const rdata = response.rdataBytes[soa]!
  const end = response.rdataOffset[soa]! + response.rdataOctets[soa]!
  const minimum = Buffer.from(rdata.buffer, rdata.byteOffset, rdata.length).readUInt32BE(end - 4)
  return Math.min(response.ttlSeconds[soa]!, minimum)
}

/** A SOA for a zone whose source has none. */
function composeSoa(apex: Uint8Array): Uint8Array {
  const numbers = Buffer.alloc(SOA_NUMBERS_OCTETS)
  for (const [i, number] of [1, ...SOA_TIMES, SOA_TTL_SECONDS].entries()) {
    numbers.writeUInt32BE(number, i * 4)
  }
  const hasRoom = HOSTMASTER.length + apex.length <= 255
  return Buffer.concat([apex, hasRoom ? HOSTMASTER : Buffer.alloc(0), apex, numbers])
}

/**
 * Removes the signatures that cover a wildcard: their proof is not in the reply. The link signs the answer as the name
 * itself.
 */
function dropWildcardSignatures(response: Response): void {
  let kept = 0
  for (let i = 0; i < response.count; i++) {
    if (response.type[i] === RRType.RRSIG && isOfWildcard(response, i)) continue
    response.move(i, kept)
    kept++
  }
  response.count = kept
}

function isOfWildcard(response: Response, i: number): boolean {
  const labels = response.rdataBytes[i]![response.rdataOffset[i]! + 3]!
  const owner = response.ownerBytes[i]!
  const start = response.ownerOffset[i]!
  const isWildcard = owner[start] === 1 && owner[start + 1] === 0x2a
  let count = isWildcard ? -1 : 0
  for (let at = start; owner[at] !== 0; at += owner[at]! + 1) count++
  return labels < count
}
