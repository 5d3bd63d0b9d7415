import { totalmem } from 'node:os'
import { getHeapStatistics } from 'node:v8'

const MIB = 2 ** 20

/** Returns the memory of the container, or of the machine, in octets. */
export function memoryLimit(): number {
  return isContained() ? process.constrainedMemory() : totalmem()
}

/** Without a limit, it is 0, or a number beyond all memory (cgroup version 1). */
function isContained(): boolean {
  const container = process.constrainedMemory()
  return container > 0 && container < totalmem()
}

/**
 * Says what this process may use, for the log. Node.js bounds its heap by the memory of the container; zones and
 * caches are outside of the heap.
 */
export function describeMemory(): string {
  const heap = Math.round(getHeapStatistics().heap_size_limit / MIB)
  const whole = Math.round(memoryLimit() / MIB)
  return `at most ${whole} MiB of this ${isContained() ? 'container' : 'machine'}, of them ${heap} MiB of heap`
}
