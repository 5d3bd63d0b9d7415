import { LABELS_MAX, Query } from '../../src/dns/message/query.ts'
import { hashLabel, NAME_HASH_SEED } from '../../src/dns/name/hash.ts'

/** Wire form of a plain name without escapes: `www.example.org.`, `*.example.org.`, `.`. */
export function wire(text: string): Uint8Array {
  const labels = text.split('.').filter((label) => label !== '')
  const octets = labels.flatMap((label) => [label.length, ...Buffer.from(label, 'latin1')])
  return new Uint8Array([...octets, 0])
}

/** Text of an uncompressed wire name without escapes. */
export function text(bytes: Uint8Array, offset = 0): string {
  let at = offset
  let out = ''
  while (bytes[at] !== 0) {
    out += `${Buffer.from(bytes.subarray(at + 1, at + 1 + bytes[at]!)).toString('latin1')}.`
    at += bytes[at]! + 1
  }
  return out === '' ? '.' : out
}

/** Makes `query` ask for a name in lower case, as `parseQuery` would. */
export function ask(query: Query, name: string, qtype: number): Query {
  const bytes = wire(name)
  query.qname.set(bytes)
  query.qnameOctets = bytes.length
  query.qtype = qtype
  query.qclass = 1
  let labels = 0
  for (let at = 0; bytes[at] !== 0; at += bytes[at]! + 1) query.labelOffset[labels++] = at
  query.labelCount = labels
  query.labelOffset[labels] = bytes.length - 1
  let hash = NAME_HASH_SEED
  query.suffixHash[labels] = hash
  for (let i = labels - 1; i >= 0; i--) {
    hash = hashLabel(hash, query.qname, query.labelOffset[i]!)
    query.suffixHash[i] = hash
  }
  if (labels > LABELS_MAX) throw new Error('too many labels')
  return query
}

/** A new query for a name. */
export function question(name: string, qtype: number): Query {
  return ask(new Query(), name, qtype)
}
