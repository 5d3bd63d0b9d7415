/** True for an error that the operating system returned (an errno). */
export function isSystemError(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && 'syscall' in error
}

/** Returns the message of an error. If a connection failed to several addresses, it is that of the first one. */
export function reasonOf(error: unknown): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  return first instanceof Error ? first.message : String(first)
}
