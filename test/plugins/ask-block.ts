import { scanType } from '../../src/dns/iana/types.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import type { Handler } from '../../src/plugin/handler.ts'
import type { SetUp } from '../support/setup.ts'
import { answering, show, transaction } from '../support/transaction.ts'

/** What follows in the chain. */
export const NEXT: Handler = answering((tx) => {
  tx.response.answeredBy = 'next'
  return 0
})

/**
 * What a block answers to `NAME TYPE`: `NOERROR; records; authority; additional`, SOAs without their
 * content; `next` = what follows in the chain answers.
 */
export async function askBlock(c: SetUp, question: string): Promise<string> {
  const [name, type = 'A'] = question.split(' ')
  const tx = transaction({ name: name!, type: scanType(type)! })
  const shown = await show(c.handler(NEXT), tx)
  if (tx.response.answeredBy === 'next') return 'next'
  const print = (line: string): string => {
    const [owner, ttl, , kind, hex = ''] = line.split(' ')
    const rdata = printRdata(scanType(kind!)!, Buffer.from(hex, 'hex'))
    return kind === 'SOA' ? `${owner} ${ttl} SOA` : `${owner} ${ttl} ${kind} ${rdata}`
  }
  const sections = [shown.answer, shown.authority, shown.additional]
  const text = sections.map((lines) => lines.map(print).join(', ')).filter((part) => part !== '')
  return [shown.status, ...text].join('; ')
}
