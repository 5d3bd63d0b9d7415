import { readFileSync, readlinkSync } from 'node:fs'

/** One clock tick of proc(5): the kernel reports 100 per second on every architecture that data threads run on. */
const TICK_MS = 10

/** Index, among the fields after the name, of ticks in user mode. The ticks in the kernel follow. */
const USER_TICKS = 11

/** The file in which the kernel reports the processor time of this thread; '' if the system has none. */
export function ownTaskFile(): string {
  try {
    return `/proc/${readlinkSync('/proc/thread-self')}/stat`
  } catch {
    return ''
  }
}

/** The processor time that the thread of a file has used, in milliseconds; NaN if it is unknown. */
export function processorMs(taskFile: string): number {
  try {
    const stat = readFileSync(taskFile, 'latin1')
    // The name may hold spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[USER_TICKS]) + Number(fields[USER_TICKS + 1])) * TICK_MS
  } catch {
    return Number.NaN
  }
}
