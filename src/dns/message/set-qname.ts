import { hashSuffixes } from '../name/hashed-name.ts'
import type { Query } from './query.ts'

/**
 * Makes `query` ask for `name`, lower-case wire form; other octets may follow it. The question that
 * a reply copies from the packet stays the client's.
 */
export function setQname(query: Query, name: Uint8Array): void {
  let labels = 0
  let octets = 0
  for (;;) {
    const length = name[octets]!
    query.labelOffset[labels] = octets
    for (const end = octets + length; octets <= end; octets++) query.qname[octets] = name[octets]!
    if (length === 0) break
    labels++
  }
  query.qnameOctets = octets
  query.labelCount = labels
  hashSuffixes(query)
}
