import { totalmem } from 'node:os'

/** Returns the memory of the container, or of the machine, in octets. */
export function memoryLimit(): number {
  const container = process.constrainedMemory()
  const machine = totalmem()
  // Without a limit, it is 0, or a number beyond all memory (cgroup version 1).
  return container > 0 && container < machine ? container : machine
}
