import type { Response } from '../dns/message/response.ts'
import { Section } from '../dns/message/section.ts'
import type { Transaction } from '../plugin/transaction.ts'

/**
 * Appends the answer records of an internal lookup to the answer of `tx`, with octets of their own:
 * the lookup's transaction can be released then. The result is truncated if the lookup was, and has
 * its ECS scope if that is longer.
 */
export function appendAnswer(tx: Transaction, from: Response): void {
  const to = tx.response
  for (let i = 0; i < from.count; i++) {
    if (from.section[i] !== Section.Answer) continue
    const owner = copyName(from.ownerBytes[i]!, from.ownerOffset[i]!)
    const start = from.rdataOffset[i]!
    const octets = from.rdataOctets[i]!
    const rdata = from.rdataBytes[i]!.slice(start, start + octets)
    const ttlSeconds = from.ttlSeconds[i]!
    const rrclass = from.rrclass[i]!
    to.add(Section.Answer, owner, 0, from.type[i]!, rrclass, ttlSeconds, rdata, 0, octets)
  }
  to.scopeBits = Math.max(to.scopeBits, from.scopeBits)
  if (from.truncated) to.truncated = true
}

/** Returns a copy of the uncompressed wire name at `bytes[offset]`. */
export function copyName(bytes: Uint8Array, offset: number): Uint8Array {
  let end = offset
  while (bytes[end]! > 0) end += bytes[end]! + 1
  return bytes.slice(offset, end + 1)
}
