/** Smaller buffers are not counted: thousands of zones would take a mapping of the system each. */
const COUNTED_OCTETS_MIN = 1024 * 1024

/** Per buffer, an equally large one that is never written, so that it takes address space only. */
const weights = new WeakMap<SharedArrayBuffer, ArrayBuffer>()

/**
 * Makes V8 count the buffer as memory of this thread, as long as the thread refers to it. V8 does not count shared
 * memory. A thread that makes no other garbage would never collect the images of earlier versions.
 */
export function countShared(buffer: SharedArrayBuffer): void {
  const octets = buffer.byteLength
  if (octets < COUNTED_OCTETS_MIN || weights.has(buffer)) return
  try {
    // A resizable buffer gets fresh pages from the system. Other buffers may get memory that V8 fills with zeros.
    weights.set(buffer, new ArrayBuffer(octets, { maxByteLength: octets }))
  } catch {
    // No address space is left. Then V8 collects when it needs memory itself.
  }
}
