import type { Timers } from '../base/timers.ts'
import {
  type ApiBody,
  type ApiClient,
  ApiError,
  type ApiMethod,
  type ApiObject,
  type ApiResource,
  collectionPath,
  isObject,
  type JsonValue,
  pathSegment,
} from './api.ts'
import { Deadline } from './deadline.ts'
import { parseJson, readRefusal, readText } from './read-body.ts'

/** Octets of one object; the API itself limits one to about 1.5 MiB. */
const OBJECT_OCTETS_MAX = 16 * 1024 * 1024
const TIMEOUT_MS = 30_000
const FIELD_MANAGER = 'sextant-operator'

const JSON_TYPE = 'application/json'
const MERGE_PATCH_TYPE = 'application/merge-patch+json'
const JSON_PATCH_TYPE = 'application/json-patch+json'
/**
 * The media type for YAML. JSON is a subset of YAML (Kubernetes API concepts, "Server-Side
 * Apply").
 */
const APPLY_TYPE = 'application/apply-patch+yaml'

/** Reference to one object, which may not exist. */
export interface ObjectRef {
  readonly resource: ApiResource
  /** '' = the kind has no namespaces. */
  readonly namespace: string
  readonly name: string
}

/** Required identity of an object: another one may have its name by now. */
interface Preconditions {
  readonly uid?: string
  readonly resourceVersion?: string
}

/** A step of a JSON patch (RFC 6902). */
interface PatchStep {
  readonly op: 'add' | 'remove' | 'replace' | 'test'
  readonly path: string
  readonly value?: JsonValue
}

interface ObjectsOptions {
  readonly api: ApiClient
  readonly timers: Timers
  /** The manager of the applied fields. Default `sextant-operator`. */
  readonly fieldManager?: string
  /** Timeout of one request including its response. Default 30 s. */
  readonly timeoutMs?: number
}

/**
 * Reads and writes single objects. Rejected requests throw ApiError: 409 `Conflict` (another writer
 * was faster) or `AlreadyExists`, 404, 422 `Invalid`, 429 with the seconds to wait. 0 means no
 * response, so it is unknown whether the request was done. Only a rejected credential is retried
 * here.
 */
export class Objects {
  readonly #options: ObjectsOptions
  readonly #running = new Set<Deadline>()
  #isClosed = false

  constructor(options: ObjectsOptions) {
    this.#options = options
  }

  /** undefined: it does not exist. */
  async get(ref: ObjectRef): Promise<ApiObject | undefined> {
    try {
      return await this.#request('GET', pathOf(ref))
    } catch (error) {
      if (isNotFound(error, ref)) return undefined
      throw error
    }
  }

  /** Creates an object in `namespace` ('' = the kind has none) with the name in `object`. */
  async create(resource: ApiResource, namespace: string, object: ApiObject): Promise<ApiObject> {
    const path = `${collectionPath(resource, namespace)}?${this.#manager()}`
    return this.#request('POST', path, JSON_TYPE, object)
  }

  /** Replaces the existing object by `object` if both have the same `resourceVersion`. */
  async replace(ref: ObjectRef, object: ApiObject): Promise<ApiObject> {
    return this.#request('PUT', `${pathOf(ref)}?${this.#manager()}`, JSON_TYPE, object)
  }

  /** As `replace`, for the status only. */
  async replaceStatus(ref: ObjectRef, object: ApiObject): Promise<ApiObject> {
    return this.#request('PUT', `${pathOf(ref)}/status?${this.#manager()}`, JSON_TYPE, object)
  }

  /**
   * Server-side apply. The fields of `object`, with `apiVersion` and `kind`, become ours, even if
   * another manager had them. Fields that were ours and are missing are removed. Creates a missing
   * object unless `metadata` has a `uid` or a `resourceVersion`.
   */
  async apply(ref: ObjectRef, object: ApiObject): Promise<ApiObject> {
    return this.#request(
      'PATCH',
      `${pathOf(ref)}?force=true&${this.#manager()}`,
      APPLY_TYPE,
      object,
    )
  }

  /** As `apply`, for the status only. 404 if the object does not exist. */
  async applyStatus(ref: ObjectRef, object: ApiObject): Promise<ApiObject> {
    const path = `${pathOf(ref)}/status?force=true&${this.#manager()}`
    return this.#request('PATCH', path, APPLY_TYPE, object)
  }

  /** JSON merge patch (RFC 7396): null removes a field; lists are replaced as a whole. */
  async patch(ref: ObjectRef, patch: ApiObject): Promise<ApiObject> {
    return this.#request('PATCH', `${pathOf(ref)}?${this.#manager()}`, MERGE_PATCH_TYPE, patch)
  }

  /** As `patch`, for the status only. */
  async patchStatus(ref: ObjectRef, patch: ApiObject): Promise<ApiObject> {
    const path = `${pathOf(ref)}/status?${this.#manager()}`
    return this.#request('PATCH', path, MERGE_PATCH_TYPE, patch)
  }

  /** JSON patch (RFC 6902): all steps or none; a `test` that fails is 422 `Invalid`. */
  async patchSteps(ref: ObjectRef, steps: readonly PatchStep[]): Promise<ApiObject> {
    const patch: JsonValue = steps.map((step) => ({ ...step }))
    return this.#request('PATCH', `${pathOf(ref)}?${this.#manager()}`, JSON_PATCH_TYPE, patch)
  }

  /**
   * Deletes an object. False: it did not exist. 409 if it does not match `preconditions`. Its
   * dependents are deleted in the background.
   */
  async delete(ref: ObjectRef, preconditions: Preconditions = {}): Promise<boolean> {
    const options = {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      propagationPolicy: 'Background',
      preconditions: { ...preconditions },
    }
    try {
      await this.#request('DELETE', pathOf(ref), JSON_TYPE, options)
      return true
    } catch (error) {
      if (isNotFound(error, ref)) return false
      throw error
    }
  }

  /** Aborts running requests and rejects later ones. */
  close(): void {
    this.#isClosed = true
    for (const deadline of this.#running) deadline.abort(new ApiError(0, 'closed'))
  }

  #manager(): string {
    return `fieldManager=${encodeURIComponent(this.#options.fieldManager ?? FIELD_MANAGER)}`
  }

  #request(
    method: ApiMethod,
    path: string,
    contentType = '',
    value?: JsonValue,
  ): Promise<ApiObject> {
    const body = value === undefined ? undefined : { contentType, body: JSON.stringify(value) }
    return this.#authenticated(({ signal }) =>
      exchange(this.#options.api, method, path, body, signal),
    )
  }

  /**
   * Runs a request, and once more if the credential was rejected: a server does nothing for an
   * unauthenticated client.
   */
  async #authenticated<T>(run: (deadline: Deadline) => Promise<T>): Promise<T> {
    try {
      return await this.#bounded(run)
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 401) throw error
      return await this.#bounded(run)
    }
  }

  async #bounded<T>(run: (deadline: Deadline) => Promise<T>): Promise<T> {
    const deadline = this.#begin()
    try {
      return await run(deadline)
    } catch (error) {
      const cause = deadline.signal.aborted ? deadline.signal.reason : error
      const known = cause instanceof ApiError ? cause : new ApiError(0, messageOf(cause))
      if (known.status === 401 || known.status === 0) this.#options.api.refresh()
      throw known
    } finally {
      this.#end(deadline)
    }
  }

  #begin(): Deadline {
    if (this.#isClosed) throw new ApiError(0, 'closed')
    const { timers, timeoutMs = TIMEOUT_MS } = this.#options
    const deadline = new Deadline(timers, timeoutMs)
    this.#running.add(deadline)
    return deadline
  }

  #end(deadline: Deadline): void {
    deadline.end()
    this.#running.delete(deadline)
  }
}

/**
 * True if the API reports that this very object does not exist. Any other 404 proves nothing: a
 * server that is starting, or a proxy before it, may not know the path or the kind yet.
 */
export function isNotFound(error: unknown, { resource, name }: ObjectRef): boolean {
  return error instanceof ApiError && error.missing === `${resource.plural} ${name}`
}

/** True if another writer was faster: the object must be read again. */
export function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.status === 409 && error.reason !== 'AlreadyExists'
}

/** True if an object of that name exists. */
export function isAlreadyThere(error: unknown): boolean {
  return error instanceof ApiError && error.reason === 'AlreadyExists'
}

async function exchange(
  api: ApiClient,
  method: ApiMethod,
  path: string,
  body: ApiBody | undefined,
  signal: AbortSignal,
): Promise<ApiObject> {
  const response = await api.send(method, path, body, signal)
  if (response.status < 200 || response.status >= 300) throw await readRefusal(response, () => {})
  const answer = await readText(response, OBJECT_OCTETS_MAX, () => {})
  if (answer === undefined)
    throw new ApiError(0, `an answer is larger than ${OBJECT_OCTETS_MAX} octets`)
  const object = parseJson(answer, 'the answer')
  if (!isObject(object)) throw new ApiError(0, 'the answer is not an object')
  return object
}

function pathOf({ resource, namespace, name }: ObjectRef): string {
  try {
    return `${collectionPath(resource, namespace)}/${pathSegment(name)}`
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    throw new ApiError(404, error.message, 0, error.reason, `${resource.plural} ${name}`)
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
