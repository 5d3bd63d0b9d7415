import { readSync } from 'node:fs'

const CHUNK_OCTETS = 64 * 1024

/**
 * Reads the rest of a file, pipe or terminal. Returns undefined if it exceeds `octetsMax`. Throws
 * the system's error.
 */
export function readAtMost(descriptor: number, octetsMax: number): Buffer | undefined {
  const chunks: Buffer[] = []
  let octets = 0
  for (;;) {
    const chunk = Buffer.allocUnsafe(CHUNK_OCTETS)
    const read = readSync(descriptor, chunk, 0, chunk.length, null)
    if (read === 0) return Buffer.concat(chunks, octets)
    octets += read
    if (octets > octetsMax) return undefined
    chunks.push(chunk.subarray(0, read))
  }
}
