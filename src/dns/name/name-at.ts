import { LOWER } from './lower.ts'

/** Octets of the uncompressed wire name at an offset, the final zero included. */
export function nameOctetsAt(bytes: Uint8Array, offset: number): number {
  let at = offset
  while (bytes[at] !== 0) at += bytes[at]! + 1
  return at + 1 - offset
}

/** True if two uncompressed wire names are equal, ignoring ASCII case (RFC 4343). */
export function equalNamesAt(
  a: Uint8Array,
  aOffset: number,
  b: Uint8Array,
  bOffset: number,
): boolean {
  const octets = nameOctetsAt(b, bOffset)
  for (let i = 0; i < octets; i++) {
    if (LOWER[a[aOffset + i]!] !== LOWER[b[bOffset + i]!]) return false
  }
  return true
}
