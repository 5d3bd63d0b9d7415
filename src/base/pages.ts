/**
 * Allocates memory in its own pages, for data that a thread needs for a limited time: the pages
 * return to the system with the buffer. `new ArrayBuffer(octets)` up to 32 MiB uses the C library,
 * and its memory stays with the process, in the arena of its thread.
 */
export function allocatePages(octets: number): ArrayBuffer {
  // V8 maps buffers that can grow. This one never grows.
  return new ArrayBuffer(octets, { maxByteLength: octets })
}
