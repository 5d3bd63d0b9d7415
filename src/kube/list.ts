import type { Timers } from '../base/timers.ts'
import { type ApiClient, ApiError, type ApiObject, isObject, textOf } from './api.ts'
import { Deadline } from './deadline.ts'
import { parseJson, readRefusal, readText } from './read-body.ts'
import { type ListTaker, listStreamed, type StreamOutcome } from './streamed-list.ts'

/** Objects asked for at once: small enough to be taken in between two queries. */
const PAGE_OBJECTS = 500
/** Of one page; the API itself holds an object to 1.5 MiB or so. */
const PAGE_OCTETS_MAX = 64 * 1024 * 1024
/** Pages of one list: fifty million objects. */
const PAGES_MAX = 100_000
/** Silence that ends a request. */
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
  /** The server can do it, so far as we know. */
  #canStream = true
  /** A streamed list came in part: pages may be what gets through. */
  #wasCut = false

  /** `path`: of the collection, with a query of at least one parameter. */
  constructor(api: ApiClient, timers: Timers, path: string) {
    this.#api = api
    this.#timers = timers
    this.#path = path
  }

  /** Lists it as a stream where the server can, else in pages. Needs the right to watch. */
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
   * Gives each page to `take`; resolves to the resourceVersion that the list is of. Rejects with
   * ApiError: 410 means that the list grew too old on the way, and has to start over.
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

  /** The resourceVersion that the collection has now, as its storage has it: not that of a cache, which may lag behind. */
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
        throw new ApiError(0, `a page of the list is over ${PAGE_OCTETS_MAX} octets`)
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
  // An empty one may be null, but is there: else all would be gone that isn't in some other answer.
  const given = isObject(list) ? list.items : undefined
  const items = given === null ? [] : given
  const metadata = isObject(list) ? list.metadata : undefined
  const resourceVersion = textOf(metadata, 'resourceVersion')
  if (!Array.isArray(items) || resourceVersion === '')
    throw new ApiError(0, 'the answer is no list')
  const continueToken = textOf(metadata, 'continue')
  return { items: items.filter(isObject), resourceVersion, continueToken }
}
