import { copyOctets } from '../base/octets.ts'
import { Rcode, RRType } from '../dns/iana/index.ts'
import { isProof, type Response } from '../dns/message/response.ts'
import { Section } from '../dns/message/section.ts'
import { equalNamesAt, nameOctetsAt } from '../dns/name/name-at.ts'
import type { ZoneDirectory } from '../dns/name/zone-directory.ts'
import { CHAIN_DEPTH_MAX, type Transaction } from '../plugin/transaction.ts'
import { AnswerStatus, type ZoneAnswerer } from '../zone/lookup/answer.ts'

/** Returned by `answerFromImage` if the image has no zone for the name; no rcode is negative. */
export const NOT_OURS = -2

/** Room for the records of an ordinary chase; more is allocated when a chase needs it. */
const CHASED_OCTETS_START = 4096

/**
 * Answers `tx` from a zone image, for `file`, `auto` and `kuadrant`. A CNAME can lead out of the
 * image's zones, or into a deeper zone of the server or of `others`. Then an internal lookup
 * answers the target, and its answer is merged:
 *
 *     target's answer           our reply
 *     records                   appended, NOERROR
 *     NXDOMAIN, NODATA          appended with its SOA and proofs, same rcode (RFC 6604 section 3);
 *                               without SOA: the SOA of our zone, as CoreDNS does
 *     referral                  appended with its NS, DS, proofs and glue, NOERROR
 *     CNAME that we have        ends here: a loop is shown once
 *     SERVFAIL                  SERVFAIL with the CNAMEs found so far
 *     not asked: chain too long the CNAMEs so far, NOERROR: the client's resolver continues
 *     no block serves it, other the same
 *
 * Returns what a handler returns: the rcode, with `tx.response` filled in; or NOT_OURS with an
 * untouched response. For a SERVFAIL with CNAMEs it returns NOERROR and sets `tx.response.rcode`,
 * because the server clears the sections after a returned SERVFAIL. Returns a Promise only if the
 * target's chain waits. It then uses only `addZoneSoa` of `answerer`.
 */
export function answerFromImage(
  tx: Transaction,
  answerer: ZoneAnswerer,
  others?: ZoneDirectory,
): number | Promise<number> {
  const { zones } = tx.server
  const status = answerer.answer(tx.query, tx.response, tx.chainDepth, zones, others)
  if (status === AnswerStatus.NotInZone) return NOT_OURS
  // The CNAMEs are sent, also with SERVFAIL.
  if (status === AnswerStatus.ChainTooLong) return Rcode.NOERROR
  if (status !== AnswerStatus.ChaseOutside) return tx.response.rcode
  // The internal lookup counts as one step. Steps inside our zones count too.
  tx.chainDepth += Math.max(0, answerer.chainSteps - 1)
  if (tx.chainDepth >= CHAIN_DEPTH_MAX) return tx.response.rcode
  const { chainEnd } = answerer
  const asked = tx.server.lookupInternally(tx, answerer.chaseTarget, tx.query.qtype)
  return asked instanceof Promise
    ? finishChaseLater(tx, answerer, asked, chainEnd)
    : finishChase(tx, answerer, asked, chainEnd)
}

function finishChaseLater(
  tx: Transaction,
  answerer: ZoneAnswerer,
  asked: Promise<Transaction | undefined>,
  chainEnd: number,
): Promise<number> {
  return asked.then((target) => finishChase(tx, answerer, target, chainEnd))
}

/** Removes an answer from the response, so that the next plugin starts with an empty one. */
export function withdrawAnswer(response: Response): void {
  response.count = 0
  response.rcode = Rcode.NOERROR
  response.authoritative = false
  response.truncated = false
  response.edeCode = -1
}

function finishChase(
  tx: Transaction,
  answerer: ZoneAnswerer,
  target: Transaction | undefined,
  chainEnd: number,
): number {
  if (target === undefined) return tx.response.rcode
  const rcode = target.response.rcode
  if (rcode === Rcode.NOERROR || rcode === Rcode.NXDOMAIN) {
    const lacksSoa = isDenialWithoutSoa(target.response)
    if (lacksSoa) tx.response.count = chainEnd
    mergeAnswer(tx, target.response, chainEnd)
    if (lacksSoa) answerer.addZoneSoa(tx.query, tx.response)
  }
  tx.server.release(target)
  if (rcode === Rcode.SERVFAIL) return keepChain(tx)
  if (rcode === Rcode.NXDOMAIN) tx.response.rcode = rcode
  return tx.response.rcode
}

/** SERVFAIL on the wire, with the CNAMEs. */
function keepChain(tx: Transaction): number {
  tx.response.rcode = Rcode.SERVFAIL
  return Rcode.NOERROR
}

/**
 * Appends the target's answer records, its SOA if the answer is negative, DNSSEC's proofs, and all
 * of a referral. SOA and referral replace our own NS, which follow `chainEnd`. Copies the octets,
 * because the target's transaction returns to its pool with the buffers of its records.
 */
function mergeAnswer(tx: Transaction, from: Response, chainEnd: number): void {
  const to = tx.response
  const isReferral = !from.authoritative
  if (isReferral || hasSoa(from)) to.count = chainEnd
  let used = 0
  for (let i = 0; i < from.count; i++) {
    const section = from.section[i]!
    if (section === Section.Answer) {
      if (from.type[i] === RRType.CNAME && hasCname(to, chainEnd, from, i)) break
    } else if (!isReferral && (section === Section.Additional || !isProof(from, i))) continue
    used = copyRecord(tx, from, i, used)
  }
  if (from.scopeBits > to.scopeBits) to.scopeBits = from.scopeBits
  if (from.truncated) to.truncated = true
  if (from.isSteered) to.isSteered = true
}

function hasSoa(response: Response): boolean {
  for (let i = 0; i < response.count; i++) {
    if (response.section[i] === Section.Authority && response.type[i] === RRType.SOA) return true
  }
  return false
}

/** True for NXDOMAIN and NODATA without SOA, as `template` makes them. */
function isDenialWithoutSoa(from: Response): boolean {
  if (hasSoa(from)) return false
  if (from.rcode === Rcode.NXDOMAIN) return true
  // A referral, or the answer of another server, which is sent as a whole.
  if (!from.authoritative && from.count > 0) return false
  for (let i = 0; i < from.count; i++) if (from.section[i] === Section.Answer) return false
  return true
}

/** True if one of the first `count` records is a CNAME with the owner of record `i` of `from`. */
function hasCname(response: Response, count: number, from: Response, i: number): boolean {
  const owner = from.ownerBytes[i]!
  const offset = from.ownerOffset[i]!
  for (let k = 0; k < count; k++) {
    if (response.type[k] !== RRType.CNAME || response.section[k] !== Section.Answer) continue
    if (equalNamesAt(response.ownerBytes[k]!, response.ownerOffset[k]!, owner, offset)) return true
  }
  return false
}

/**
 * Copies record `i` after the `used` octets of `tx.chasedOctets`, and returns the new number of
 * used octets.
 */
function copyRecord(tx: Transaction, from: Response, i: number, used: number): number {
  const owner = from.ownerBytes[i]!
  const ownerStart = from.ownerOffset[i]!
  const ownerOctets = nameOctetsAt(owner, ownerStart)
  const rdataOctets = from.rdataOctets[i]!
  const at = reserve(tx, used, ownerOctets + rdataOctets)
  const bytes = tx.chasedOctets
  copyOctets(owner, ownerStart, bytes, at, ownerOctets)
  const rdataAt = at + ownerOctets
  copyOctets(from.rdataBytes[i]!, from.rdataOffset[i]!, bytes, rdataAt, rdataOctets)
  tx.response.add(
    from.section[i]! as Section,
    bytes,
    at,
    from.type[i]!,
    from.rrclass[i]!,
    from.ttlSeconds[i]!,
    bytes,
    rdataAt,
    rdataOctets,
  )
  return rdataAt + rdataOctets
}

/**
 * Returns the offset of room for `octets` more: after `used`, or 0 of a new buffer (records keep
 * the old one alive).
 */
function reserve(tx: Transaction, used: number, octets: number): number {
  if (used + octets <= tx.chasedOctets.length) return used
  const wanted = Math.max(CHASED_OCTETS_START, tx.chasedOctets.length * 2, octets)
  tx.chasedOctets = new Uint8Array(wanted)
  return 0
}
