import { printRcode, printType } from '../../dns/iana/index.ts'
import type { Query } from '../../dns/message/query.ts'
import { printName } from '../../dns/name/name.ts'
import type { Client } from '../../egress/agent/client.ts'
import type { Decision } from '../../egress/agent/decision.ts'

/** Addresses or selectors that a line has of each sort. */
const LISTED_MAX = 16

/** The log line of a query that the DNS rules of a client deny. */
export function denialLine({ id }: Client, query: Query, rcode: number): string {
  const { qname, qnameOctets, qtype } = query
  const name = printName(qname.subarray(0, qnameOctets))
  return `decision: ${id}, ${name} ${printType(qtype)}, denied with ${printRcode(rcode)}`
}

/** The log line of an answer with addresses. */
export function answerLine({ client, name, ...decision }: Decision): string {
  const { addresses, allowed, denied, selectors, result, waitMs } = decision
  const others = addresses.filter((address) => !allowed.includes(address))
  const texts = [
    ...listed('allowed', allowed),
    ...listed('not allowed', others),
    ...listed('never allowed', denied),
    ...(selectors.length === 0 ? ['selected by no rule'] : listed('selected by', selectors)),
    `${result} after ${waitMs.toFixed(1)} ms`,
  ]
  return `decision: ${client.id}, ${printName(name)}, ${texts.join(', ')}`
}

function listed(what: string, texts: readonly string[]): readonly string[] {
  if (texts.length === 0) return []
  const left = texts.length - LISTED_MAX
  const more = left > 0 ? ` and ${left} more` : ''
  return [`${what} ${texts.slice(0, LISTED_MAX).join(' ')}${more}`]
}
