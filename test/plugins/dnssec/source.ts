import { Rcode } from '../../../src/dns/iana/rcodes.ts'
import { Section } from '../../../src/dns/message/section.ts'
import type { Handler } from '../../../src/plugin/handler.ts'
import { scanRecord } from '../../../src/plugins/template/record-text.ts'
import { answering } from '../../support/transaction.ts'

export const SOA = 'example.org. 300 IN SOA ns.example.org. hostmaster.example.org. 1 2 3 4 60'

export interface Source {
  readonly answer?: readonly string[]
  /** Query types that have the answer; absent = all. */
  readonly types?: readonly number[]
  readonly authority?: readonly string[]
  readonly additional?: readonly string[]
  readonly rcode?: number
  /** Not authoritative: the answer of another server. */
  readonly foreign?: boolean
  /** Answers by a promise. */
  readonly late?: boolean
  readonly onAsked?: () => void
}

/** A link below that answers with these records, in the form of master files. */
export function source(below: Source): Handler {
  return answering(({ query, response }) => {
    below.onAsked?.()
    const { answer = [], authority = [], additional = [], rcode = Rcode.NOERROR } = below
    const add = (section: Section, lines: readonly string[]): void => {
      for (const line of lines) {
        const record = scanRecord(line)
        if (typeof record === 'string') throw new Error(record)
        const { owner, type, rrclass, ttlSeconds, rdata } = record
        response.add(section, owner, 0, type, rrclass, ttlSeconds, rdata, 0, rdata.length)
      }
    }
    const isAnswered = below.types?.includes(query.qtype) ?? true
    if (isAnswered) add(Section.Answer, answer)
    add(Section.Authority, isAnswered && below.types !== undefined ? [] : authority)
    add(Section.Additional, additional)
    response.authoritative = below.foreign !== true
    response.rcode = rcode
    return rcode
  }, below.late)
}
