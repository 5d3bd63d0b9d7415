import { RRType } from '../../dns/iana/types.ts'
import * as L from '../../zone/image/layout.ts'
import type { ZoneReader } from '../../zone/image/reader.ts'
import {
  DEFAULT_ANSWER,
  defaultAnswer,
  findSignedType,
  signatureOf,
  signaturesPerAnswer,
  signedTypes,
} from '../../zone/image/signature-directory.ts'

/** The records of an RRset that a transfer has, and their TTL. */
interface TransferredRecords {
  /** Indexes of their rdata. */
  readonly rdataIndexes: ArrayLike<number>
  /** Not of signatures: those have the TTLs of what they cover. */
  readonly ttlSeconds: number
}

const { NSEC, NSEC3, RRSIG } = RRType

/**
 * Returns the records of an RRset that a transfer has; undefined = all of them, with the TTL of the RRset.
 *
 * A transfer can't have all possible answers of a steered RRset of a zone that this server signs: each has signatures
 * of its own, and none of them covers the whole set. So it has the default answer with its signatures.
 */
export function transferredRecords(
  reader: ZoneReader,
  body: number,
  rrset: number,
): TransferredRecords | undefined {
  const { words } = reader
  const type = words[rrset + L.RRSET_HEAD]! >>> 16
  const isSteered = words[rrset + L.RRSET_STEERING_COUNT]! > 0
  const hasAnswers =
    isSteered || ((type === NSEC || type === NSEC3) && reader.rdataCount(rrset) > 1)
  if (!hasAnswers) return undefined
  if (type === RRSIG) return defaultSignatures(words, reader.steeringStart(rrset))
  const directory = directoryOf(reader, body)
  const block = directory === 0 ? 0 : findSignedType(words, directory, type)
  return block === 0 ? undefined : defaultAnswer(words, block)
}

/** True if all records of an RRset are transferred, and have its TTL, whatever else the name has. */
export function hasOneForm({ words }: ZoneReader, rrset: number): boolean {
  const head = words[rrset + L.RRSET_HEAD]!
  const type = head >>> 16
  if (words[rrset + L.RRSET_STEERING_COUNT]! > 0 || type === RRSIG) return false
  return (type !== NSEC && type !== NSEC3) || (head & 0xffff) === 1
}

/** Returns the TTL of the signatures of a type (RFC 4034 section 3): that of the records that they cover. */
export function signatureTtl(reader: ZoneReader, body: number, type: number): number | undefined {
  const covered = reader.findRRset(body, type)
  if (covered === 0) return undefined
  const records = transferredRecords(reader, body, covered)
  return records?.ttlSeconds ?? reader.words[covered + L.RRSET_TTL]!
}

function defaultSignatures(words: Uint32Array, directory: number): TransferredRecords {
  const rdataIndexes: number[] = []
  for (const block of signedTypes(words, directory)) {
    const first = signatureOf(words, block, DEFAULT_ANSWER)
    for (let i = 0; first >= 0 && i < signaturesPerAnswer(words, block); i++)
      rdataIndexes.push(first + i)
  }
  return { rdataIndexes, ttlSeconds: 0 }
}

/** Returns the place of the signature directory of a name; 0 = another server signed it, or it is not signed. */
function directoryOf(reader: ZoneReader, body: number): number {
  const signatures = reader.findRRset(body, RRSIG)
  if (signatures === 0 || reader.words[signatures + L.RRSET_STEERING_COUNT] === 0) return 0
  return reader.steeringStart(signatures)
}
