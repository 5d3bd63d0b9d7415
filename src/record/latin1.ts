/** Longest text that goes through the scratch buffer. */
const SCRATCH_OCTETS = 1024
const scratch = Buffer.alloc(SCRATCH_OCTETS)

/** The octets as a string, each as one character: a key for maps, or part of one. */
export function printLatin1(octets: Uint8Array): string {
  const { length } = octets
  if (length > SCRATCH_OCTETS) return Buffer.from(octets).toString('latin1')
  // Copying some octets costs less than a Buffer over them: this runs several times per record.
  for (let i = 0; i < length; i++) scratch[i] = octets[i]!
  return scratch.toString('latin1', 0, length)
}
