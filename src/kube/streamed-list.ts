import { type ApiClient, ApiError, type ApiObject } from './api.ts'
import type { Deadline } from './deadline.ts'
import { LineSplitter } from './line-splitter.ts'
import { readRefusal } from './read-body.ts'
import { scanWatchLine, type WatchEvent } from './watch-event.ts'

/** Octets of one event; the API itself limits an object to about 1.5 MiB. */
const LINE_OCTETS_MAX = 16 * 1024 * 1024
/** Enough for millions of objects; the connection is closed once all objects were received. */
const STREAM_SECONDS = 600
const STREAM = `&watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=&allowWatchBookmarks=true&timeoutSeconds=${STREAM_SECONDS}`

/** Receives the results of a list. */
export interface ListTaker {
  put(objects: readonly ApiObject[]): void
  /** Objects that were deleted during the list. */
  remove(events: readonly WatchEvent[]): void
}

export type StreamOutcome =
  | { readonly kind: 'whole'; readonly resourceVersion: string }
  /** The server does not support it; the default before Kubernetes 1.34. */
  | { readonly kind: 'refused' }
  /** It ended before all objects were received. */
  | { readonly kind: 'cut'; readonly error: unknown }

/**
 * Lists a collection as a watch that starts with all objects (Kubernetes API concepts, "Streaming
 * lists"). It needs half the server's work for pages: the server encodes each object once and holds
 * no list. Rejects with errors that a list in pages would cause too.
 */
export async function listStreamed(
  api: ApiClient,
  path: string,
  taker: ListTaker,
  deadline: Deadline,
): Promise<StreamOutcome> {
  const response = await api.get(`${path}${STREAM}`, deadline.signal)
  if (response.status !== 200) {
    const refusal = await readRefusal(response, () => deadline.touch())
    if (refusal.status === 400 || refusal.status === 422) return { kind: 'refused' }
    throw refusal
  }
  try {
    const resourceVersion = await readUntilEnd(response.body, taker, deadline)
    return { kind: 'whole', resourceVersion }
  } catch (error) {
    return { kind: 'cut', error: deadline.signal.aborted ? deadline.signal.reason : error }
  }
}

async function readUntilEnd(
  body: AsyncIterable<Uint8Array>,
  taker: ListTaker,
  deadline: Deadline,
): Promise<string> {
  const lines = new LineSplitter(LINE_OCTETS_MAX)
  for await (const chunk of body) {
    deadline.touch()
    const complete = lines.push(chunk)
    if (complete === undefined)
      throw new ApiError(0, `an object is larger than ${LINE_OCTETS_MAX} octets`)
    const objects: ApiObject[] = []
    for (const line of complete) {
      const { event, resourceVersion, isListEnd } = scanWatchLine(line)
      if (event?.isDeleted === false) objects.push(event.object)
      else if (event !== undefined || isListEnd) {
        if (objects.length > 0) taker.put(objects.splice(0))
        // Leaving the loop closes the connection.
        if (isListEnd) return resourceVersion
        if (event !== undefined) taker.remove([event])
      }
    }
    if (objects.length > 0) taker.put(objects)
  }
  throw new ApiError(0, 'the list is incomplete')
}
