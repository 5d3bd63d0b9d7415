import { RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { Section } from '../../../src/dns/message/section.ts'
import { scanAddress } from '../../../src/dns/text/address.ts'
import type { Transaction } from '../../../src/plugin/transaction.ts'
import { transaction } from '../../support/transaction.ts'

export interface Reply {
  readonly name?: string
  readonly type?: number
  readonly from?: string
  readonly zone?: string
  readonly rcode?: number
  readonly opcode?: number
  readonly kind?: 'answer' | 'nodata' | 'referral' | 'empty'
  /** Of the records of an answer; the query type by default. */
  readonly answers?: readonly number[]
  /** As `Response.imputedLabel`. */
  readonly label?: number
}

/** A transaction of that monotonic time whose chain is done; by default with one A record, to 192.0.2.1. */
export function transactionOf(reply: Reply = {}, nowMs = 1): Transaction {
  const { name = 'www.example.org.', type = RRType.A, rcode = 0, kind = 'answer' } = reply
  const tx = transaction({ name, type, from: reply.from ?? '192.0.2.1', zone: reply.zone ?? '' })
  tx.startedMs = nowMs
  const { query, response } = tx
  query.opcode = reply.opcode ?? 0
  response.rcode = rcode
  response.imputedLabel = reply.label ?? 0
  const add = (section: Section, added: number): void => {
    response.add(section, query.qname, 0, added, RRClass.IN, 60, new Uint8Array(22), 0, 4)
  }
  if (rcode === 0 && kind === 'answer') {
    for (const answer of reply.answers ?? [type]) add(Section.Answer, answer)
  }
  if (rcode === 3 || kind === 'nodata') add(Section.Authority, RRType.SOA)
  if (kind === 'referral') add(Section.Authority, RRType.NS)
  if (kind !== 'empty') add(Section.Additional, RRType.A)
  return tx
}

/** Makes `address` the source of the query. */
export function askFrom({ query }: Transaction, address: string): void {
  const { family, bytes } = scanAddress(address)!
  query.peerFamily = family
  query.peerAddress.fill(0)
  query.peerAddress.set(bytes)
}
