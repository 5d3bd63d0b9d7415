import { ApiError, type ApiResponse, isObject, type JsonValue, textOf } from './api.ts'

/** Of the explanation of an error. */
const ERROR_OCTETS_MAX = 64 * 1024

/** The text of a body; undefined where it is longer than `octetsMax`. `onData` is called as it comes. */
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
    throw new ApiError(0, `${what} is no JSON`)
  }
}

/** What the API says about its refusal. */
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
  /** As ApiError has it. */
  readonly missing: string
}

/** What a Status says; of what is none, as a proxy may send it, the text itself. */
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
