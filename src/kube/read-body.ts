import { ApiError, type ApiResponse, isObject, type JsonValue, textOf } from './api.ts'

/** Octets of the body of an error. */
const ERROR_OCTETS_MAX = 64 * 1024

/**
 * The text of a body; undefined if it is longer than `octetsMax`. `onData` is called for each
 * chunk.
 */
export async function readText(
  { body }: ApiResponse,
  octetsMax: number,
  onData: () => void,
): Promise<string | undefined> {
  const chunks: Uint8Array[] = []
  let octets = 0
  for await (const chunk of body) {
    onData()
    octets += chunk.length
    if (octets > octetsMax) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, octets).toString('utf8')
}

/** The value of a JSON text. Throws ApiError. */
export function parseJson(text: string, what: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw new ApiError(0, `${what} is not JSON`)
  }
}

export async function readRefusal(response: ApiResponse, onData: () => void): Promise<ApiError> {
  const { status, retryAfterSeconds } = response
  const text = (await readText(response, ERROR_OCTETS_MAX, onData)) ?? ''
  const { message, reason, missing } = scanStatus(text)
  const line = `${status} ${message}`.trimEnd()
  return new ApiError(status, line, retryAfterSeconds, reason, status === 404 ? missing : '')
}

interface StatusText {
  readonly message: string
  readonly reason: string
  /** As in ApiError. */
  readonly missing: string
}

/**
 * Parses a Status. If the text is not a Status, as from a proxy, the text itself is the message.
 */
function scanStatus(text: string): StatusText {
  try {
    const value = JSON.parse(text) as JsonValue
    if (isObject(value)) {
      const reason = textOf(value, 'reason')
      const [kind, name] = [textOf(value.details, 'kind'), textOf(value.details, 'name')]
      const missing = reason !== 'NotFound' || kind === '' || name === '' ? '' : `${kind} ${name}`
      return { message: textOf(value, 'message') || reason, reason, missing }
    }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  return { message: text.trim().slice(0, 200), reason: '', missing: '' }
}
