/**
 * Memory in pages of its own, for what a thread needs for a while: they return to the system with the buffer. What
 * `new ArrayBuffer(octets)` takes from the C library up to 32 MiB stays with the process, in the arena of its thread.
 */
export function allocatePages(octets: number): ArrayBuffer {
  // V8 maps buffers that can grow; this one never does.
  return new ArrayBuffer(octets, { maxByteLength: octets })
}
