/** Throws when an invariant of ours does not hold: a bug, never bad input. */
export function assert(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${what}`)
}

/** Closes a `switch` over a union: a missing case is a type error here. */
export function assertNever(value: never): never {
  throw new Error(`assertion failed: unexpected value ${String(value)}`)
}
