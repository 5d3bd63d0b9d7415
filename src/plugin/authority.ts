import { copyOctets } from '../base/octets.ts'
import { Rcode, RRType } from '../dns/iana/index.ts'
import { type Response, Section } from '../dns/message/response.ts'
import { AnswerStatus, type ZoneAnswerer } from '../zone/lookup/answer.ts'
import { CHAIN_DEPTH_MAX, type Transaction } from './transaction.ts'

/** Returned by `answerFromImage` where the image has no zone for the name; no rcode is negative. */
export const NOT_OURS = -2

/** Room for the records of an ordinary chase; more is allocated when a chase needs it. */
const CHASED_OCTETS_START = 4096

/**
 * Answers `tx` out of a zone image; what `file`, `auto` and `kuadrant` have in common. Where a CNAME
 * leads out of the image's zones, the server itself is asked for the target and its answer is merged
 * into ours:
 *
 *     target's answer           ours
 *     records                   appended, NOERROR
 *     NXDOMAIN, NODATA          appended with its SOA, same rcode (RFC 6604 section 3)
 *     SERVFAIL                  SERVFAIL with the CNAMEs found so far
 *     not asked: chain too long the CNAMEs so far, NOERROR: the client's resolver goes on
 *     nobody serves it, other   the same
 *
 * Returns what a handler returns: the rcode, with `tx.response` filled in; or NOT_OURS with an
 * untouched response. A SERVFAIL that carries CNAMEs returns NOERROR with `tx.response.rcode` set,
 * since a returned SERVFAIL would have the server clear the sections. A Promise only if the target's
 * chain waits. `answerer` is not used after the call returned, not even by a Promise.
 */
export function answerFromImage(tx: Transaction, answerer: ZoneAnswerer): number | Promise<number> {
  const status = answerer.answer(tx.query, tx.response, tx.chainDepth)
  if (status === AnswerStatus.NotInZone) return NOT_OURS
  if (status !== AnswerStatus.ChaseOutside) return tx.response.rcode
  // The requery itself counts one step; those inside our zones count too.
  tx.chainDepth += Math.max(0, answerer.chainSteps - 1)
  if (tx.chainDepth >= CHAIN_DEPTH_MAX) return tx.response.rcode
  const asked = tx.server.requery(tx, answerer.chaseTarget, tx.query.qtype)
  return asked instanceof Promise
    ? asked.then((target) => finishChase(tx, target))
    : finishChase(tx, asked)
}

/** Takes back what an answer put into the response, so that the next plugin can start afresh. */
export function withdrawAnswer(response: Response): void {
  response.count = 0
  response.rcode = Rcode.NOERROR
  response.authoritative = false
  response.truncated = false
}

function finishChase(tx: Transaction, target: Transaction | undefined): number {
  if (target === undefined) return tx.response.rcode
  const rcode = target.response.rcode
  if (rcode === Rcode.NOERROR || rcode === Rcode.NXDOMAIN) mergeAnswer(tx, target.response)
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
 * Appends the target's answer records, and its SOA where the answer is negative. Octets are copied:
 * the target goes back to its pool, and with it whatever buffers its records lie in.
 */
function mergeAnswer(tx: Transaction, from: Response): void {
  const to = tx.response
  let used = 0
  for (let i = 0; i < from.count; i++) {
    const section = from.section[i]!
    if (section === Section.Additional) continue
    if (section === Section.Authority && from.type[i] !== RRType.SOA) continue
    used = copyRecord(tx, from, i, used)
  }
  if (from.scopeBits > to.scopeBits) to.scopeBits = from.scopeBits
  if (from.truncated) to.truncated = true
}

/** Copies record `i` behind the `used` octets of `tx.chasedOctets`; returns the new count of them. */
function copyRecord(tx: Transaction, from: Response, i: number, used: number): number {
  const owner = from.ownerBytes[i]!
  const ownerStart = from.ownerOffset[i]!
  const ownerOctets = nameOctets(owner, ownerStart)
  const rdataOctets = from.rdataOctets[i]!
  const at = reserve(tx, used, ownerOctets + rdataOctets)
  const bytes = tx.chasedOctets
  copyOctets(owner, ownerStart, bytes, at, ownerOctets)
  const rdataAt = at + ownerOctets
  copyOctets(from.rdataBytes[i]!, from.rdataOffset[i]!, bytes, rdataAt, rdataOctets)
  tx.response.add(
    from.section[i] === Section.Answer ? Section.Answer : Section.Authority,
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

/** Where `octets` more fit: behind `used`, or at 0 of a new buffer (records keep the old one alive). */
function reserve(tx: Transaction, used: number, octets: number): number {
  if (used + octets <= tx.chasedOctets.length) return used
  const wanted = Math.max(CHASED_OCTETS_START, tx.chasedOctets.length * 2, octets)
  tx.chasedOctets = new Uint8Array(wanted)
  return 0
}

function nameOctets(bytes: Uint8Array, offset: number): number {
  let at = offset
  while (bytes[at] !== 0) at += bytes[at]! + 1
  return at + 1 - offset
}
