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
  /** '' = the core group, of namespaces, Secrets and the like. */
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

export type ApiMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** What a request carries. */
export interface ApiBody {
  /** A media type: of a PATCH it says what kind of patch it is. */
  readonly contentType: string
  readonly body: string
}

/** What we need of an API server. */
export interface ApiClient {
  /** Where the server is, as of the last request: an edited configuration may say something new. */
  readonly place: string
  /** `path`: with its query. Rejects where there is no answer: not reached, bad certificate, bad credentials file. */
  get(path: string, signal: AbortSignal): Promise<ApiResponse>
  /** As `get`, with another method. That it rejects doesn't tell whether the server did it. */
  send(
    method: ApiMethod,
    path: string,
    body: ApiBody | undefined,
    signal: AbortSignal,
  ): Promise<ApiResponse>
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
  /** As the Status of the answer has it: `Conflict`, `AlreadyExists`, `Invalid`, ...; '' = none. */
  readonly reason: string
  /** `dnsrecords app`: the object that isn't there; '' = the answer names none. */
  readonly missing: string

  constructor(status: number, message: string, retryAfterSeconds = 0, reason = '', missing = '') {
    super(clip(message))
    this.name = 'ApiError'
    this.status = status
    this.retryAfterSeconds = retryAfterSeconds
    this.reason = reason
    this.missing = missing
  }
}

/** The path of a collection. `namespace`: '' = that of all namespaces, or of a kind that has none. */
export function collectionPath(resource: ApiResource, namespace: string): string {
  const { group, version, plural } = resource
  const root = group === '' ? '/api' : `/apis/${group}`
  const scope = namespace === '' ? '' : `/namespaces/${pathSegment(namespace)}`
  return `${root}/${version}${scope}/${plural}`
}

/**
 * A name as part of a path. Throws ApiError 404 for what nothing can be called, and what would name
 * something else: the whole collection, or what is above it.
 */
export function pathSegment(name: string): string {
  if (/^\.{0,2}$/.test(name)) {
    throw new ApiError(404, `404 nothing can have the name ${JSON.stringify(name)}`, 0, 'NotFound')
  }
  return encodeURIComponent(name)
}

export function isObject(value: JsonValue | undefined): value is ApiObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A string field of a mapping; '' where it is anything else. */
export function textOf(parent: JsonValue | undefined, name: string): string {
  const value = isObject(parent) ? parent[name] : undefined
  return typeof value === 'string' ? value : ''
}
