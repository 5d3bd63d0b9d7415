import { printRcode, printType } from '../../dns/iana/index.ts'
import type { Query } from '../../dns/message/query.ts'
import { printName } from '../../dns/name/name.ts'
import type { Client } from '../../node/client.ts'

/** The log line of a query that the DNS rules of a client deny. */
export function denialLine({ id }: Client, query: Query, rcode: number): string {
  const { qname, qnameOctets, qtype } = query
  const name = printName(qname.subarray(0, qnameOctets))
  return `decision: ${id}, ${name} ${printType(qtype)}, denied with ${printRcode(rcode)}`
}
