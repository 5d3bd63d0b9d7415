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
  // Most often, the port does not use TLS.
  ['EPROTO', 'TLS handshake failed'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'TLS handshake failed'],
  ['HPE_HEADER_OVERFLOW', 'HTTP header too long'],
  ['ERR_HTTP2_ERROR', 'invalid HTTP/2 response'],
])
/** Codes of Node's HTTP parser, such as `HPE_INVALID_CONSTANT`. */
const HTTP_PARSER_PREFIX = 'HPE_'
const CODE = /^[A-Z][A-Z0-9_]{0,63}$/

/**
 * Describes a connection's fault in a few words. Never includes the error's text, because the peer
 * may control it.
 */
export function printFault(error: Error): string {
  const code = hasCode(error) && CODE.test(error.code) ? error.code : ''
  const words = WORDS.get(code)
  if (words !== undefined) return words
  if (code.startsWith(HTTP_PARSER_PREFIX)) return 'invalid HTTP response'
  return code === '' ? 'the connection failed' : code
}
