import { setQname } from '../dns/message/set-qname.ts'
import type { Transaction } from './transaction.ts'

/**
 * Makes the query ask for `name` again, after links below served it under another name. Records that
 * point to the name of the query point to a copy of the other name then.
 */
export function restoreName({ query, response }: Transaction, name: Uint8Array): void {
  const { qname, qnameOctets, labelCount } = query
  const other = qname.slice(0, qnameOctets)
  if (other.length === name.length && Buffer.compare(other, name) === 0) return
  response.needsSigning = true
  for (let i = 0; i < response.count; i++) {
    if (response.ownerBytes[i] === qname) response.ownerBytes[i] = other
    if (response.rdataBytes[i] === qname) response.rdataBytes[i] = other
  }
  setQname(query, name)
  if (response.imputedLabel === 0) return
  // The zone has as many labels as before, counted from the root.
  response.imputedLabel = Math.max(0, query.labelCount - labelCount + response.imputedLabel)
}
