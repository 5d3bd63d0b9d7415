/** Longest text that uses the scratch buffer. */
const SCRATCH_OCTETS = 1024
const SLASH = 0x2f
const scratch = Buffer.alloc(SCRATCH_OCTETS)

/** Returns the octets as a string with one character each: a map key, or part of one. */
export function printLatin1(octets: Uint8Array): string {
  const { length } = octets
  if (length > SCRATCH_OCTETS) return Buffer.from(octets).toString('latin1')
  // Copying a few octets costs less than a Buffer over them. This runs several times per record.
  for (let i = 0; i < length; i++) scratch[i] = octets[i]!
  return scratch.toString('latin1', 0, length)
}

/**
 * Returns `first`/`second` as a new string; both are ASCII. A plain concatenation would keep the
 * texts alive that both were cut from.
 */
export function joinLatin1(first: string, second: string): string {
  if (first.length + second.length >= SCRATCH_OCTETS) {
    return Buffer.from(`${first}/${second}`, 'latin1').toString('latin1')
  }
  let length = 0
  for (let i = 0; i < first.length; i++) scratch[length++] = first.charCodeAt(i)
  scratch[length++] = SLASH
  for (let i = 0; i < second.length; i++) scratch[length++] = second.charCodeAt(i)
  return scratch.toString('latin1', 0, length)
}
