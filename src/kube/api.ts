export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue }

/** A Kubernetes object in the API's JSON form. */
export type ApiObject = { readonly [key: string]: JsonValue }

/** API path of a kind. */
export interface ApiResource {
  /** '' = the core group, which has namespaces and Secrets. */
  readonly group: string
  readonly version: string
  readonly plural: string
}

/** A response whose head was received. */
export interface ApiResponse {
  /** HTTP status. */
  readonly status: number
  /** Seconds of `Retry-After`; 0 = not given. */
  readonly retryAfterSeconds: number
  /** Unix time in milliseconds by the clock of the server, a whole second; missing = not given. */
  readonly dateMs?: number | undefined
  /** Rejects if the connection breaks or the request is aborted. */
  readonly body: AsyncIterable<Uint8Array>
}

export type ApiMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Body of a request. */
export interface ApiBody {
  /** A media type: for a PATCH it selects the kind of patch. */
  readonly contentType: string
  readonly body: string
}

/** The part of an API client that is used here. */
export interface ApiClient {
  /** Address of the server, as of the last request: an edited configuration may change it. */
  readonly place: string
  /**
   * `path`: with its query. Rejects without a response: server not reached, bad certificate, bad
   * credentials file.
   */
  get(path: string, signal: AbortSignal): Promise<ApiResponse>
  /**
   * As `get`, with another method. After a rejection it is unknown whether the server did the
   * request.
   */
  send(
    method: ApiMethod,
    path: string,
    body: ApiBody | undefined,
    signal: AbortSignal,
  ): Promise<ApiResponse>
  /**
   * Reads configuration and credentials again before the next request: they may have been replaced.
   */
  refresh(): void
}

/**
 * Longest reason in characters. It is shown in the log and on the ready page, and another system
 * wrote it.
 */
const REASON_MAX = 300

export function clip(reason: string): string {
  return reason.length > REASON_MAX ? `${reason.slice(0, REASON_MAX - 1)}…` : reason
}

/** A failed request, which may be tried again. */
export class ApiError extends Error {
  /** HTTP status; 0 = no response. */
  readonly status: number
  readonly retryAfterSeconds: number
  /**
   * The reason in the Status of the response: `Conflict`, `AlreadyExists`, `Invalid`, ...; '' =
   * none.
   */
  readonly reason: string
  /** `dnsrecords app`: the object that does not exist; '' = the response names none. */
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

/** The path of a collection. `namespace`: '' = all namespaces, or a kind without namespaces. */
export function collectionPath(resource: ApiResource, namespace: string): string {
  const { group, version, plural } = resource
  const root = group === '' ? '/api' : `/apis/${group}`
  const scope = namespace === '' ? '' : `/namespaces/${pathSegment(namespace)}`
  return `${root}/${version}${scope}/${plural}`
}

/**
 * A name as part of a path. Throws ApiError 404 for a name that no object can have, and that would
 * address another resource: the whole collection, or its parent.
 */
export function pathSegment(name: string): string {
  if (/^\.{0,2}$/.test(name)) {
    throw new ApiError(404, `404 invalid object name ${JSON.stringify(name)}`, 0, 'NotFound')
  }
  return encodeURIComponent(name)
}

export function isObject(value: JsonValue | undefined): value is ApiObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A string field of a mapping; '' if it has another type or is missing. */
export function textOf(parent: JsonValue | undefined, name: string): string {
  const value = isObject(parent) ? parent[name] : undefined
  return typeof value === 'string' ? value : ''
}
