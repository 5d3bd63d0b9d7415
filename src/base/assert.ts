/** Throws if an invariant of the program is violated: a bug, never invalid input. */
export function assert(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${what}`)
}

/** Closes a `switch` over a union: a missing case is a type error here. */
export function assertNever(value: never): never {
  throw new Error(`assertion failed: unexpected value ${String(value)}`)
}
