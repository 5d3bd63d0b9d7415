import { Rcode } from '../dns/iana/index.ts'
import type { ResourceRecord } from '../dns/message/message.ts'
import { Section } from '../dns/message/section.ts'
import { sentRcode } from './status.ts'
import type { Transaction } from './transaction.ts'

/** The reply to a query, with as much of it as says which addresses a name has. */
export interface SentAnswer {
  readonly question: { readonly name: Uint8Array; readonly type: number; readonly rrclass: number }
  readonly rcode: number
  /** Empty if the reply is an error. */
  readonly answer: readonly ResourceRecord[]
}

/** Reads the reply that a chain's `status` leads to. Valid until the transaction serves again. Not for the hot path. */
export function sentAnswer(tx: Transaction, status: number): SentAnswer {
  const { qtype: type, qclass: rrclass, qname, qnameOctets } = tx.query
  const rcode = sentRcode(tx, status)
  const answer = rcode === Rcode.NOERROR ? answerOf(tx) : []
  return { question: { name: qname.subarray(0, qnameOctets), type, rrclass }, rcode, answer }
}

function answerOf({ query, response }: Transaction): readonly ResourceRecord[] {
  response.expand(query)
  const answer: ResourceRecord[] = []
  for (let i = 0; i < response.count; i++) {
    if (response.section[i] !== Section.Answer) continue
    const at = response.rdataOffset[i]!
    answer.push({
      owner: nameAt(response.ownerBytes[i]!, response.ownerOffset[i]!),
      type: response.type[i]!,
      rrclass: response.rrclass[i]!,
      ttlSeconds: response.ttlSeconds[i]!,
      rdata: response.rdataBytes[i]!.subarray(at, at + response.rdataOctets[i]!),
    })
  }
  return answer
}

/** The uncompressed name at `bytes[offset]`. */
function nameAt(bytes: Uint8Array, offset: number): Uint8Array {
  let end = offset
  while (bytes[end] !== 0) end += bytes[end]! + 1
  return bytes.subarray(offset, end + 1)
}
