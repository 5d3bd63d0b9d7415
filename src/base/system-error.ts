/** True for an error that the operating system returned (an errno). */
export function isSystemError(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && 'syscall' in error
}
