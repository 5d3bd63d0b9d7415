import type { Timers } from '../base/timers.ts'
import { type ApiClient, ApiError, type ApiObject, isObject, textOf } from './api.ts'
import { Deadline } from './deadline.ts'
import { parseJson, readRefusal, readText } from './read-body.ts'
import { type ListTaker, listStreamed, type StreamOutcome } from './streamed-list.ts'

/** Objects per page: few enough to process between two queries. */
const PAGE_OBJECTS = 500
/** Octets of one page; the API itself limits an object to about 1.5 MiB. */
const PAGE_OCTETS_MAX = 64 * 1024 * 1024
/** Pages of one list: 50 million objects. */
const PAGES_MAX = 100_000
/** A request without data for this long is aborted. */
const IDLE_MS = 30_000

/** One page of a list. */
interface Page {
  readonly items: readonly ApiObject[]
  readonly resourceVersion: string
  /** '' = the last page. */
  readonly continueToken: string
}

/** Lists a collection. */
export class Lister {
  readonly #api: ApiClient
  readonly #timers: Timers
  readonly #path: string
  #limit = PAGE_OBJECTS
  #deadline: Deadline | undefined
  /** The server supports streamed lists, as far as is known. */
  #canStream = true
  /** The last streamed list was cut: pages may succeed. */
  #wasCut = false

  /** `path`: of the collection, with a query of at least one parameter. */
  constructor(api: ApiClient, timers: Timers, path: string) {
    this.#api = api
    this.#timers = timers
    this.#path = path
  }

  /**
   * Lists the collection as a stream if the server supports it, otherwise in pages. Needs
   * permission to watch.
   */
  async listStreamed(taker: ListTaker): Promise<string> {
    if (this.#canStream && !this.#wasCut) {
      const outcome = await this.#stream(taker)
      if (outcome.kind === 'whole') return outcome.resourceVersion
      this.#canStream = outcome.kind !== 'refused'
      this.#wasCut = outcome.kind === 'cut'
      if (outcome.kind === 'cut') throw outcome.error
    }
    const version = await this.list((objects) => taker.put(objects))
    this.#wasCut = false
    return version
  }

  /**
   * Passes each page to `take`; resolves to the resourceVersion of the list. Rejects with ApiError:
   * 410 means that the list expired during paging and must be restarted.
   */
  async list(take: (objects: readonly ApiObject[]) => void): Promise<string> {
    let continueToken = ''
    for (let page = 0; page < PAGES_MAX; page++) {
      const { items, resourceVersion, ...next } = await this.#page(this.#limit, continueToken)
      take(items)
      if (next.continueToken === '') return resourceVersion
      continueToken = next.continueToken
    }
    throw new ApiError(0, `a list has more than ${PAGES_MAX} pages`)
  }

  /**
   * The collection's current resourceVersion in storage, not that of a cache, which may lag behind.
   */
  async version(): Promise<string> {
    return (await this.#page(1, '')).resourceVersion
  }

  abort(reason: Error): void {
    this.#deadline?.abort(reason)
  }

  async #stream(taker: ListTaker): Promise<StreamOutcome> {
    const deadline = new Deadline(this.#timers, IDLE_MS)
    this.#deadline = deadline
    try {
      return await listStreamed(this.#api, this.#path, taker, deadline)
    } catch (error) {
      throw deadline.signal.aborted ? deadline.signal.reason : error
    } finally {
      deadline.end()
    }
  }

  async #page(limit: number, continueToken: string): Promise<Page> {
    const token = continueToken === '' ? '' : `&continue=${encodeURIComponent(continueToken)}`
    const deadline = new Deadline(this.#timers, IDLE_MS)
    this.#deadline = deadline
    const touch = (): void => deadline.touch()
    try {
      const path = `${this.#path}&limit=${limit}${token}`
      const response = await this.#api.get(path, deadline.signal)
      if (response.status !== 200) throw await readRefusal(response, touch)
      const text = await readText(response, PAGE_OCTETS_MAX, touch)
      if (text === undefined) {
        this.#limit = Math.max(1, this.#limit >> 1)
        throw new ApiError(0, `a page of the list is larger than ${PAGE_OCTETS_MAX} octets`)
      }
      return scanPage(text)
    } catch (error) {
      throw deadline.signal.aborted ? deadline.signal.reason : error
    } finally {
      deadline.end()
    }
  }
}

function scanPage(text: string): Page {
  const list = parseJson(text, 'the list')
  // An empty list may be null, but must be present. Otherwise an unrelated response would delete
  // all objects.
  const given = isObject(list) ? list.items : undefined
  const items = given === null ? [] : given
  const metadata = isObject(list) ? list.metadata : undefined
  const resourceVersion = textOf(metadata, 'resourceVersion')
  if (!Array.isArray(items) || resourceVersion === '')
    throw new ApiError(0, 'the answer is not a list')
  const continueToken = textOf(metadata, 'continue')
  return { items: items.filter(isObject), resourceVersion, continueToken }
}
