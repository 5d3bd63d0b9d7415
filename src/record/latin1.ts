/** Longest text that goes through the scratch buffer. */
const SCRATCH_OCTETS = 1024
const SLASH = 0x2f
const scratch = Buffer.alloc(SCRATCH_OCTETS)

/** The octets as a string, each as one character: a key for maps, or part of one. */
export function printLatin1(octets: Uint8Array): string {
  const { length } = octets
  if (length > SCRATCH_OCTETS) return Buffer.from(octets).toString('latin1')
  // Copying some octets costs less than a Buffer over them: this runs several times per record.
  for (let i = 0; i < length; i++) scratch[i] = octets[i]!
  return scratch.toString('latin1', 0, length)
}

/** `first`/`second` as a string of its own; both ASCII. Joined as strings they would keep the texts that they were cut from. */
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
