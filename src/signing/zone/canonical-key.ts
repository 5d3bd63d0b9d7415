/*
 * The names of a zone as strings whose order is the canonical order of DNS names (RFC 4034 section 6.1): the labels
 * from the apex outwards, each octet as the character after its own, each label ended by U+0000. The apex is ''.
 */

const LABEL_END = '\0'

/** Returns the key of an owner. `owner`: lower-case wire form, with the apex of `apexOctets` octets at its end. */
export function ownerKey(owner: Uint8Array, apexOctets: number): string {
  const end = owner.length - apexOctets
  const codes: number[] = []
  for (let at = 0; at < end; at += owner[at]! + 1) {
    const label = [0]
    for (let i = at + owner[at]!; i > at; i--) label.push(owner[i]! + 1)
    codes.push(...label)
  }
  return String.fromCharCode(...codes.reverse())
}

/** Returns the owner of a key in wire form. */
export function keyOwner(key: string, apex: Uint8Array): Uint8Array {
  const owner = new Uint8Array(key.length + apex.length)
  owner.set(apex, key.length)
  for (let start = 0; start < key.length; ) {
    const end = key.indexOf(LABEL_END, start)
    const at = key.length - end - 1
    owner[at] = end - start
    for (let i = start; i < end; i++) owner[at + 1 + i - start] = key.charCodeAt(i) - 1
    start = end + 1
  }
  return owner
}

/** Returns the key of the name above; the apex has none. */
export function parentKey(key: string): string {
  return key.slice(0, key.lastIndexOf(LABEL_END, key.length - 2) + 1)
}

/** Compares keys in the canonical order of their names. */
export function compareKeys(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

/** Returns the index of the first key after `key` in sorted keys. */
export function placeAfter(count: number, keyAt: (index: number) => string, key: string): number {
  let low = 0
  let high = count
  while (low < high) {
    const middle = (low + high) >>> 1
    if (keyAt(middle) <= key) low = middle + 1
    else high = middle
  }
  return low
}
