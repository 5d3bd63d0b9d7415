import * as types from '../../dns/iana/types.ts'
import type { SectionSignatures } from '../../dns/message/direct-answer.ts'
import * as layout from '../image/layout.ts'
import type { ZoneReader } from '../image/reader.ts'
import * as directory from '../image/signature-directory.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { RRType } = types
const { BODY_STATE, FLAG_SIGNED, RRSET_HEAD, RRSET_STEERING_COUNT } = layout
const { findSignedType, signatureOf, signaturesPerAnswer } = directory

/**
 * Adds the signatures of the RRset of `type` that the name at `body` owns, and returns how many. `answer`: number of
 * the answer, or DEFAULT_ANSWER. @hot
 */
export function addSignatures(
  reader: ZoneReader,
  signatures: SectionSignatures,
  body: number,
  type: number,
  answer: number,
): number {
  const { words, bytes } = reader
  if ((words[body + BODY_STATE]! & FLAG_SIGNED) === 0) return 0
  const rrset = reader.findRRset(body, RRType.RRSIG)
  if (words[rrset + RRSET_STEERING_COUNT] !== 0) {
    return addListed(reader, signatures, rrset, type, answer)
  }
  const count = words[rrset + RRSET_HEAD]! & 0xffff
  const before = signatures.count
  let at = reader.rdataStart(rrset)
  for (let i = 0; i < count; i++) {
    const covered = (bytes[at + 2]! << 8) | bytes[at + 3]!
    if (covered === type) signatures.add(at)
    at += 2 + ((bytes[at]! << 8) | bytes[at + 1]!)
  }
  return signatures.count - before
}

/** The same for an RRSIG RRset with a directory. */
function addListed(
  reader: ZoneReader,
  signatures: SectionSignatures,
  rrset: number,
  type: number,
  answer: number,
): number {
  const { words, bytes } = reader
  const block = findSignedType(words, reader.steeringStart(rrset), type)
  if (block === 0) return 0
  const first = signatureOf(words, block, answer)
  if (first < 0) return 0
  const count = signaturesPerAnswer(words, block)
  let at = reader.rdataAt(rrset, reader.rdataStart(rrset), first)
  for (let i = 0; i < count; i++) {
    signatures.add(at)
    at += 2 + ((bytes[at]! << 8) | bytes[at + 1]!)
  }
  return count
}

/** True if the RRset of `type` that the name at `body` owns may have several answers. */
export function isListed(reader: ZoneReader, body: number, type: number): boolean {
  const { words } = reader
  if ((words[body + BODY_STATE]! & FLAG_SIGNED) === 0) return false
  const rrset = reader.findRRset(body, RRType.RRSIG)
  if (words[rrset + RRSET_STEERING_COUNT] === 0) return false
  return findSignedType(words, reader.steeringStart(rrset), type) !== 0
}
