import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import type { ApiBody, ApiClient, ApiMethod, ApiResponse } from '../../src/kube/api.ts'
import { listBody, Stream, statusBody } from './api-double.ts'

// biome-ignore lint/suspicious/noExplicitAny: an object as the API has it
type Stored = any

interface Watch {
  readonly plural: string
  readonly namespace: string
  readonly stream: Stream
}

/** One request that was done, or refused by the test. */
export interface DoneRequest {
  readonly method: ApiMethod
  readonly path: string
}

/**
 * An API server in memory that several clients share: lists, watches, and writes of statuses with
 * optimistic concurrency.
 */
export class ObjectApi {
  readonly requests: DoneRequest[] = []
  /** Connections are cut. */
  isAway = false
  /** Refuses requests for which it returns a status and a message. */
  refuse: (request: DoneRequest) => readonly [number, string] | undefined = () => undefined
  /** Runs before a write is done. */
  beforeWrite: () => void = () => {}
  /** Writes wait for it. */
  gate: Promise<void> = Promise.resolve()
  /** Plurals that are not defined. */
  readonly undefinedKinds = new Set<string>()
  readonly #objects = new Map<string, Stored>()
  readonly #watches = new Set<Watch>()
  #version = 100
  #uids = 0

  /** A client of it. */
  client(): ApiClient {
    return {
      place: 'memory',
      refresh: () => {},
      get: (path, signal) => this.#send('GET', path, undefined, signal),
      send: (method, path, body, signal) => this.#send(method, path, body, signal),
    }
  }

  get version(): number {
    return this.#version
  }

  /** Writes of statuses that were done. */
  get writes(): number {
    return this.requests.filter(({ method }) => method === 'PATCH').length
  }

  /** Creates or replaces an object, as another client would. */
  put(plural: string, namespace: string, name: string, object: object): void {
    const key = `${plural} ${namespace}/${name}`
    const known = this.#objects.get(key)
    const uid = known?.metadata.uid ?? `u${++this.#uids}`
    const metadata = { namespace, name, uid, resourceVersion: String(++this.#version) }
    const stored = { ...object, metadata }
    this.#objects.set(key, stored)
    this.#notify(known === undefined ? 'ADDED' : 'MODIFIED', plural, stored)
  }

  delete(plural: string, namespace: string, name: string): void {
    const key = `${plural} ${namespace}/${name}`
    const known = this.#objects.get(key)
    if (known === undefined) return
    this.#objects.delete(key)
    const metadata = { ...known.metadata, resourceVersion: String(++this.#version) }
    this.#notify('DELETED', plural, { ...known, metadata })
  }

  read(plural: string, namespace: string, name: string): Stored {
    return this.#objects.get(`${plural} ${namespace}/${name}`)
  }

  /** Cuts all watches. */
  cut(): void {
    for (const { stream } of this.#watches) stream.fail(new Error('cut'))
    this.#watches.clear()
  }

  #notify(type: string, plural: string, object: Stored): void {
    for (const watch of this.#watches) {
      const isMine = watch.plural === plural && isIn(watch.namespace, object)
      if (isMine) watch.stream.event(type, structuredClone(object))
    }
  }

  async #send(
    method: ApiMethod,
    path: string,
    body: ApiBody | undefined,
    signal: AbortSignal,
  ): Promise<ApiResponse> {
    const url = new URL(path, 'http://api')
    const request = { method, path: url.pathname }
    if (this.isAway) throw new Error('connection refused')
    const match =
      /^\/apis\/[^/]+\/[^/]+(?:\/namespaces\/([^/]+))?\/([a-z]+)(?:\/([^/]+))?(?:\/(status))?$/.exec(
        url.pathname,
      )
    const [, namespace = '', plural = '', name = ''] = match ?? []
    const refused = this.refuse(request)
    if (refused !== undefined) return answer(refused[0], statusBody(refused[0], refused[1]))
    if (this.undefinedKinds.has(plural)) return answer(404, statusBody(404, 'page not found'))
    if (url.searchParams.has('sendInitialEvents')) {
      return answer(422, statusBody(422, 'sendInitialEvents is forbidden', 'Invalid'))
    }
    if (url.searchParams.has('watch')) return this.#watch(plural, namespace, url, signal)
    if (name === '') {
      const objects = [...this.#objects]
        .filter(([key, object]) => key.startsWith(`${plural} `) && isIn(namespace, object))
        .map(([, object]) => object)
      return answer(200, listBody(String(this.#version), objects))
    }
    if (method === 'PATCH') {
      await this.gate
      this.beforeWrite()
    }
    const done = this.#object(method, plural, namespace, name, body)
    this.requests.push(request)
    return done
  }

  #watch(plural: string, namespace: string, url: URL, signal: AbortSignal): ApiResponse {
    const from = Number(url.searchParams.get('resourceVersion'))
    const stream = new Stream()
    const watch = { plural, namespace, stream }
    signal.addEventListener('abort', () => {
      this.#watches.delete(watch)
      stream.fail(new Error('aborted'))
    })
    // Deletions in between are not kept: too old a version must list again.
    if (from < this.#version) {
      return answer(410, statusBody(410, 'too old resource version', 'Expired'))
    }
    this.#watches.add(watch)
    return { status: 200, retryAfterSeconds: 0, body: stream }
  }

  #object(
    method: ApiMethod,
    plural: string,
    namespace: string,
    name: string,
    body: ApiBody | undefined,
  ): ApiResponse {
    const known = this.read(plural, namespace, name)
    if (known === undefined) {
      const details = { name, kind: plural }
      const text = `${plural} "${name}" not found`
      return answer(404, { ...statusBody(404, text, 'NotFound'), details })
    }
    if (method === 'GET') return answer(200, known)
    const patch = JSON.parse(body!.body)
    const { uid, resourceVersion } = patch.metadata ?? {}
    const isSame =
      (uid ?? known.metadata.uid) === known.metadata.uid &&
      (resourceVersion ?? known.metadata.resourceVersion) === known.metadata.resourceVersion
    if (!isSame) return answer(409, statusBody(409, 'the object has been modified', 'Conflict'))
    const { metadata: _, ...rest } = known
    this.put(plural, namespace, name, { ...rest, status: { ...rest.status, ...patch.status } })
    return answer(200, this.read(plural, namespace, name))
  }
}

function isIn(namespace: string, object: Stored): boolean {
  return namespace === '' || object.metadata.namespace === namespace
}

function answer(status: number, body: object): ApiResponse {
  const stream = new Stream()
  stream.push(JSON.stringify(body))
  stream.end()
  return { status, retryAfterSeconds: 0, body: stream }
}

/** Serves the API over HTTP, for servers in other threads. Returns its URL. */
export async function serveObjectApi(t: Test, api: ObjectApi): Promise<string> {
  const client = api.client()
  const answerTo = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const abort = new AbortController()
    response.on('close', () => abort.abort())
    const body = { contentType: '', body: Buffer.concat(chunks).toString() }
    const method = request.method as ApiMethod
    const reply = await client.send(method, request.url ?? '', body, abort.signal)
    response.writeHead(reply.status, { 'content-type': 'application/json' })
    response.flushHeaders()
    for await (const chunk of reply.body) response.write(chunk)
    response.end()
  }
  const server = createServer((request, response) => {
    answerTo(request, response).catch(() => response.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
