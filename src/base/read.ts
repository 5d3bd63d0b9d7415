import { fstatSync, readSync } from 'node:fs'

const CHUNK_OCTETS = 64 * 1024

/**
 * Reads the rest of a file, pipe or terminal. Returns undefined if it exceeds `octetsMax`. Throws
 * the system's error.
 */
export function readAtMost(descriptor: number, octetsMax: number): Buffer | undefined {
  const chunks: Buffer[] = []
  let octets = 0
  // A file is one chunk, which need not be copied. The size of others is 0.
  const { size } = fstatSync(descriptor)
  for (;;) {
    const isFirst = chunks.length === 0 && size <= octetsMax
    const chunk = Buffer.allocUnsafe(isFirst ? Math.max(size, CHUNK_OCTETS) : CHUNK_OCTETS)
    const read = readSync(descriptor, chunk, 0, chunk.length, null)
    if (read === 0) return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, octets)
    octets += read
    if (octets > octetsMax) return undefined
    chunks.push(chunk.subarray(0, read))
  }
}
