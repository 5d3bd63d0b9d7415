import type { Dispenser } from '../../corefile/dispenser.ts'

/**
 * Moves to each occurrence of a directive that a server block may have only once. Use it instead of
 * `d.next()`, with the number of occurrences so far. Throws InputError at the second one.
 */
export function nextOnce(d: Dispenser, occurrences: number): boolean {
  if (!d.next()) return false
  if (occurrences > 0) throw d.error('this plugin can only be used once per Server Block')
  return true
}
