import type { ApiBody, ApiClient, ApiMethod, ApiResponse } from '../../src/kube/api.ts'

/** A body that comes when the test says so. */
export class Stream implements AsyncIterable<Uint8Array> {
  readonly #chunks: Uint8Array[] = []
  #isEnded = false
  #error: Error | undefined
  #wake: () => void = () => {}

  push(text: string): void {
    this.#chunks.push(Buffer.from(text))
    this.#wake()
  }

  /** One event of a watch. */
  event(type: string, object: object): void {
    this.push(`${JSON.stringify({ type, object })}\n`)
  }

  end(): void {
    this.#isEnded = true
    this.#wake()
  }

  fail(error: Error): void {
    this.#error = error
    this.#wake()
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    for (;;) {
      const chunk = this.#chunks.shift()
      if (chunk !== undefined) yield chunk
      else if (this.#error !== undefined) throw this.#error
      else if (this.#isEnded) return
      else await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }
}

/** A request that waits for the test to answer it. */
export interface Asked {
  readonly method: ApiMethod
  readonly path: string
  readonly query: URLSearchParams
  readonly isWatch: boolean
  readonly signal: AbortSignal
  /** '' = there is no body. */
  readonly contentType: string
  /** The body, read as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: whatever the code under test wrote
  readonly body: any
  /** Answers with that JSON. */
  reply(status: number, body: object, retryAfterSeconds?: number): void
  /** Answers with 200 and what the stream brings. */
  stream(): Stream
  /** There is no answer. */
  fail(error: Error): void
}

/** An API server whose answers are what the test says, in memory. */
export class ApiDouble implements ApiClient {
  /** Requests not answered yet, oldest first. */
  readonly asked: Asked[] = []
  refreshes = 0
  place = 'https://api'
  /** `Date` of its responses; undefined = they have none. */
  dateMs: number | undefined
  /** False: refuses streamed lists, as servers that can't do them do, without asking the test. */
  streamsLists = false
  #wake: () => void = () => {}

  refresh(): void {
    this.refreshes++
  }

  get(path: string, signal: AbortSignal): Promise<ApiResponse> {
    return this.send('GET', path, undefined, signal)
  }

  send(
    method: ApiMethod,
    path: string,
    body: ApiBody | undefined,
    signal: AbortSignal,
  ): Promise<ApiResponse> {
    const url = new URL(path, 'http://api')
    return new Promise((resolve, reject) => {
      const respond = (status: number, retryAfterSeconds = 0): Stream => {
        const body = new Stream()
        signal.addEventListener('abort', () => body.fail(new Error('aborted')))
        resolve({ status, retryAfterSeconds, dateMs: this.dateMs, body })
        return body
      }
      signal.addEventListener('abort', () => reject(new Error('aborted')))
      if (url.searchParams.has('sendInitialEvents') && !this.streamsLists) {
        const refusal = respond(422)
        refusal.push(JSON.stringify(statusBody(422, 'sendInitialEvents is forbidden', 'Invalid')))
        refusal.end()
        return
      }
      this.asked.push({
        method,
        contentType: body?.contentType ?? '',
        body: body === undefined ? undefined : JSON.parse(body.body),
        path: url.pathname,
        query: url.searchParams,
        isWatch: url.searchParams.has('watch'),
        signal,
        reply: (status, body, retryAfterSeconds) => {
          const stream = respond(status, retryAfterSeconds)
          stream.push(JSON.stringify(body))
          stream.end()
        },
        stream: () => respond(200),
        fail: reject,
      })
      this.#wake()
    })
  }

  /** The oldest request, once there is one. */
  async next(): Promise<Asked> {
    for (;;) {
      const first = this.asked.shift()
      if (first !== undefined) return first
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }
}

/** What the API server sends for a refused request. */
export function statusBody(code: number, message: string, reason = ''): object {
  return { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, message, reason }
}

/** What it sends where there is no such object. */
export function missingBody(plural: string, name: string): object {
  const details = { name, group: 'kuadrant.io', kind: plural }
  return { ...statusBody(404, `${plural} "${name}" not found`, 'NotFound'), details }
}

/** A page of a list. */
export function listBody(resourceVersion: string, items: readonly object[], token = ''): object {
  const metadata = token === '' ? { resourceVersion } : { resourceVersion, continue: token }
  return { kind: 'List', apiVersion: 'v1', metadata, items }
}

/** Lets everything run that only waits for a turn. */
export async function turns(count = 20): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve))
}
