/** True for an error with a code of Node or of the operating system. */
export function hasCode(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
}

const WORDS: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'connection refused'],
  ['ECONNRESET', 'connection reset'],
  ['EHOSTUNREACH', 'host unreachable'],
  ['ENETUNREACH', 'network unreachable'],
  ['ETIMEDOUT', 'connection timed out'],
])
const CODE = /^[A-Z][A-Z0-9_]{0,63}$/

/**
 * Describes a connection's fault in a few words. Never includes the error's text, because the peer
 * may control it.
 */
export function printFault(error: Error): string {
  const code = hasCode(error) && CODE.test(error.code) ? error.code : ''
  return WORDS.get(code) ?? (code === '' ? 'the connection failed' : code)
}
