/** A value as JSON has it. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue }

/** A Kubernetes resource as the API writes it. */
export type ApiObject = { readonly [key: string]: JsonValue }

/** Where a kind is found. */
export interface ApiResource {
  readonly group: string
  readonly version: string
  readonly plural: string
}

/** An answer whose head has come. */
export interface ApiResponse {
  /** HTTP status. */
  readonly status: number
  /** Seconds of `Retry-After`; 0 = none. */
  readonly retryAfterSeconds: number
  /** Rejects where the connection breaks or the request is aborted. */
  readonly body: AsyncIterable<Uint8Array>
}

/** What list and watch need of an API server. */
export interface ApiClient {
  /** `path`: with its query. Rejects where there is no answer: not reached, bad certificate, bad credentials file. */
  get(path: string, signal: AbortSignal): Promise<ApiResponse>
  /** Has configuration and credentials read anew before the next request: they may have been replaced. */
  refresh(): void
}

/** Longest reason, in characters: it goes to the log and to the ready page, and is what somebody else wrote. */
const REASON_MAX = 300

export function clip(reason: string): string {
  return reason.length > REASON_MAX ? `${reason.slice(0, REASON_MAX - 1)}…` : reason
}

/** Why the API gave us nothing usable: something to try again. */
export class ApiError extends Error {
  /** HTTP status; 0 = there was no answer. */
  readonly status: number
  readonly retryAfterSeconds: number

  constructor(status: number, message: string, retryAfterSeconds = 0) {
    super(clip(message))
    this.name = 'ApiError'
    this.status = status
    this.retryAfterSeconds = retryAfterSeconds
  }
}

export function isObject(value: JsonValue | undefined): value is ApiObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A string field of a mapping; '' where it is anything else. */
export function textOf(parent: JsonValue | undefined, name: string): string {
  const value = isObject(parent) ? parent[name] : undefined
  return typeof value === 'string' ? value : ''
}
