import {
  type ApiBody,
  type ApiClient,
  type ApiMethod,
  type ApiObject,
  type ApiResource,
  type ApiResponse,
  collectionPath,
  isObject,
  type JsonValue,
  textOf,
} from '../../src/kube/api.ts'
import { keyOf } from '../../src/kube/object-key.ts'
import { listBody, Stream, statusBody } from './api-double.ts'

/** A request as a test may refuse it. */
export interface MemoryRequest {
  readonly method: ApiMethod
  readonly path: string
  readonly body: ApiObject
}

interface Watcher {
  readonly target: Target
  readonly stream: Stream
}

/** What a path addresses. */
interface Target {
  /** `apis/G/V/PLURAL` or `api/V/PLURAL`. */
  readonly collection: string
  readonly plural: string
  readonly namespace: string
  readonly name: string
  readonly isStatus: boolean
  /** `label=value`, or `label` with any value; '' = all. */
  readonly labels: string
}

interface Change {
  readonly version: number
  readonly type: string
  readonly collection: string
  readonly object: ApiObject
}

/** An API server in memory: lists, watches, and writes with versions and preconditions; no schemas. */
export class MemoryApi implements ApiClient {
  place = 'https://memory'
  /** `POST plural name` of each write that was done. */
  readonly writes: string[] = []
  /** Refuses the requests for which it returns a status. */
  refuse: (request: MemoryRequest) => number | undefined = () => undefined
  readonly #objects = new Map<string, Map<string, ApiObject>>()
  readonly #changes: Change[] = []
  readonly #watchers = new Set<Watcher>()
  #version = 1
  #time = 0

  refresh(): void {}

  get(path: string, signal: AbortSignal): Promise<ApiResponse> {
    return this.send('GET', path, undefined, signal)
  }

  async send(
    method: ApiMethod,
    path: string,
    sent: ApiBody | undefined,
    signal: AbortSignal,
  ): Promise<ApiResponse> {
    const url = new URL(path, this.place)
    const body: ApiObject = sent === undefined ? {} : JSON.parse(sent.body)
    const refused = this.refuse({ method, path: url.pathname, body })
    if (refused !== undefined) return whole(refused, statusBody(refused, 'refused by the test'))
    const target = targetOf(url)
    if (method !== 'GET') return this.#write(method, target, body, sent?.contentType ?? '')
    if (url.searchParams.has('sendInitialEvents')) {
      return whole(422, statusBody(422, 'sendInitialEvents is forbidden', 'Invalid'))
    }
    if (url.searchParams.has('watch')) return this.#watch(target, url, signal)
    if (target.name === '') {
      const items = [...this.#in(target).values()].filter((object) => isIn(object, target))
      return whole(200, listBody(String(this.#version), items))
    }
    const found = this.#in(target).get(pathKey(target))
    return found === undefined ? missing(target) : whole(200, found)
  }

  /** All objects of a kind, by key. */
  all(resource: ApiResource): ReadonlyMap<string, ApiObject> {
    return this.#in(targetOf(new URL(collectionPath(resource, ''), this.place)))
  }

  /** Writes an object as another client would. Returns it as stored. */
  put(resource: ApiResource, object: ApiObject): ApiObject {
    const collection = targetOf(new URL(collectionPath(resource, ''), this.place))
    const known = this.#in(collection).get(keyOf(object))
    const { metadata } = known ?? {}
    const merged = {
      ...object,
      metadata: { ...asMapping(metadata), ...asMapping(object.metadata) },
    }
    return this.#store(collection.collection, merged, known === undefined ? 'ADDED' : 'MODIFIED')
  }

  /** Deletes an object as another client would. */
  drop(resource: ApiResource, key: string): void {
    const target = targetOf(new URL(collectionPath(resource, ''), this.place))
    this.#remove(target.collection, key)
  }

  /** Ends all watches, as a restart of the server does. */
  cut(): void {
    for (const { stream } of this.#watchers) stream.end()
    this.#watchers.clear()
  }

  #write(method: ApiMethod, target: Target, body: ApiObject, contentType: string): ApiResponse {
    const { plural, namespace, collection } = target
    const name = target.name || textOf(body.metadata, 'name')
    const key = pathKey({ ...target, name })
    const known = this.#in(target).get(key)
    const note = `${method} ${plural}${target.isStatus ? '/status' : ''} ${name}`
    if (method === 'POST') {
      if (known !== undefined) {
        return whole(409, statusBody(409, `${plural} "${name}" already exists`, 'AlreadyExists'))
      }
      this.writes.push(note)
      const metadata = namespace === '' ? {} : { namespace }
      const made = { ...body, metadata: { ...asMapping(body.metadata), ...metadata } }
      return whole(201, this.#store(collection, made, 'ADDED'))
    }
    const isApply = contentType.includes('apply-patch')
    if (known === undefined) {
      if (!isApply || target.isStatus) return missing({ ...target, name })
      this.writes.push(note)
      return whole(201, this.#store(collection, body, 'ADDED'))
    }
    const wanted = asMapping(method === 'DELETE' ? body.preconditions : body.metadata)
    for (const field of ['uid', 'resourceVersion']) {
      const want = textOf(wanted, field)
      if (want !== '' && want !== textOf(known.metadata, field)) {
        return whole(409, statusBody(409, `${name}: the ${field} is another one`, 'Conflict'))
      }
    }
    this.writes.push(note)
    if (method === 'DELETE') {
      this.#remove(collection, key)
      return whole(200, { kind: 'Status', status: 'Success' })
    }
    const { resourceVersion: _, ...metadata } = wanted
    // One manager applies the whole status of an object.
    if (isApply && target.isStatus) {
      const applied = { ...known, status: body.status ?? {} }
      return whole(200, this.#store(collection, applied, 'MODIFIED'))
    }
    if (method === 'PUT' && !target.isStatus) {
      const { uid = '', creationTimestamp = '' } = asMapping(known.metadata)
      const status = known.status === undefined ? {} : { status: known.status }
      const put = { ...body, ...status, metadata: { ...metadata, uid, creationTimestamp } }
      return whole(200, this.#store(collection, put, 'MODIFIED'))
    }
    const change = target.isStatus ? { status: body.status ?? {} } : { ...body, metadata }
    return whole(200, this.#store(collection, merge(known, change) as ApiObject, 'MODIFIED'))
  }

  #watch(target: Target, url: URL, signal: AbortSignal): ApiResponse {
    const stream = new Stream()
    const watcher = { target, stream }
    const since = Number(url.searchParams.get('resourceVersion'))
    for (const { version, type, collection, object } of this.#changes) {
      if (version <= since || collection !== target.collection) continue
      if (isIn(object, target)) stream.event(type, object)
    }
    this.#watchers.add(watcher)
    signal.addEventListener('abort', () => {
      this.#watchers.delete(watcher)
      stream.fail(new Error('aborted'))
    })
    return { status: 200, retryAfterSeconds: 0, body: stream }
  }

  #store(collection: string, object: ApiObject, type: string): ApiObject {
    const metadata = {
      uid: `uid-${this.#version + 1}`,
      creationTimestamp: new Date(this.#time++ * 1000).toISOString(),
      ...asMapping(object.metadata),
      resourceVersion: String(++this.#version),
    }
    const stored = { ...object, metadata }
    this.#objects.get(collection)!.set(keyOf(stored), stored)
    this.#publish({ version: this.#version, type, collection, object: stored })
    return stored
  }

  #remove(collection: string, key: string): void {
    const known = this.#objects.get(collection)?.get(key)
    if (known === undefined) return
    this.#objects.get(collection)!.delete(key)
    const metadata = { ...asMapping(known.metadata), resourceVersion: String(++this.#version) }
    const object = { ...known, metadata }
    this.#publish({ version: this.#version, type: 'DELETED', collection, object })
  }

  #publish(change: Change): void {
    this.#changes.push(change)
    for (const { target, stream } of this.#watchers) {
      const isSeen = target.collection === change.collection && isIn(change.object, target)
      if (isSeen) stream.event(change.type, change.object)
    }
  }

  #in({ collection }: Target): Map<string, ApiObject> {
    const known = this.#objects.get(collection)
    if (known !== undefined) return known
    const objects = new Map<string, ApiObject>()
    this.#objects.set(collection, objects)
    return objects
  }
}

function targetOf({ pathname, searchParams }: URL): Target {
  const parts = pathname.split('/').slice(1)
  const head = parts.splice(0, parts[0] === 'api' ? 2 : 3)
  const namespace = parts[0] === 'namespaces' && parts.length > 2 ? parts.splice(0, 2)[1]! : ''
  const [plural = '', name = '', sub = ''] = parts
  const labels = searchParams.get('labelSelector') ?? ''
  const collection = [...head, plural].join('/')
  return { collection, plural, namespace, name, isStatus: sub === 'status', labels }
}

function pathKey({ namespace, name }: Target): string {
  return namespace === '' ? name : `${namespace}/${name}`
}

function isIn(object: ApiObject, { namespace, labels }: Target): boolean {
  if (namespace !== '' && textOf(object.metadata, 'namespace') !== namespace) return false
  const [label = '', value] = labels.split('=')
  const found = textOf(asMapping(object.metadata).labels, label)
  return labels === '' || (value === undefined ? found !== '' : found === value)
}

function asMapping(value: JsonValue | undefined): ApiObject {
  return isObject(value) ? value : {}
}

/** A JSON merge patch (RFC 7396). */
function merge(into: JsonValue | undefined, patch: JsonValue): JsonValue {
  if (!isObject(patch)) return patch
  const merged: { [key: string]: JsonValue } = { ...asMapping(into) }
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name]
    else merged[name] = merge(merged[name], value)
  }
  return merged
}

function whole(status: number, body: object): ApiResponse {
  const stream = new Stream()
  stream.push(JSON.stringify(body))
  stream.end()
  return { status, retryAfterSeconds: 0, body: stream }
}

function missing({ plural, name }: Target): ApiResponse {
  const details = { name, kind: plural }
  const message = `${plural} "${name}" not found`
  return whole(404, { ...statusBody(404, message, 'NotFound'), details })
}
