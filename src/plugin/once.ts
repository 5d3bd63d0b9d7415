import type { Dispenser } from '../corefile/dispenser.ts'

/**
 * Moves to each occurrence of a directive that a server block may hold only once: use it in place of
 * `d.next()`, with the count of occurrences so far. Throws InputError at the second.
 */
export function nextOnce(d: Dispenser, occurrences: number): boolean {
  if (!d.next()) return false
  if (occurrences > 0) throw d.error('this plugin can only be used once per Server Block')
  return true
}
