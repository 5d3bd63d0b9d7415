/** Throws if an invariant of the program is violated: a bug, never invalid input. */
export function assert(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${what}`)
}
