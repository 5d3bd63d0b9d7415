import type { Timers } from '../../base/timers.ts'
import type { HttpReply } from '../../plugin/description.ts'
import type { InspectedThreads } from './inspected-threads.ts'

/** As in Go's net/http/pprof. */
const SECONDS_DEFAULT = 30
export const SECONDS_MAX = 60

/** The methods that make a profile. */
const KINDS = {
  profile: {
    enable: 'Profiler.enable',
    start: 'Profiler.start',
    stop: 'Profiler.stop',
    options: {},
  },
  heap: {
    enable: 'HeapProfiler.enable',
    start: 'HeapProfiler.startSampling',
    stop: 'HeapProfiler.stopSampling',
    /** Octets between two samples, on average. */
    options: { samplingInterval: 16_384 },
  },
} as const

/** Makes profiles on request, one at a time. */
export class Profiles {
  readonly #timers: Timers
  #isBusy = false
  #isOver = false
  /** Ends the wait. */
  #end: () => void = () => {}

  constructor(timers: Timers) {
    this.#timers = timers
  }

  /** Resolves to the page that lists threads and profiles. */
  async index(): Promise<HttpReply> {
    const { names } = await this.#withThreads(async (threads) => threads)
    const query = `thread=${names[0]}&seconds=${SECONDS_DEFAULT}`
    const lines = [
      `threads: ${names.join(', ')}`,
      `CPU profile (.cpuprofile): profile?${query}`,
      `sampled allocations that are still in use (.heapprofile): heap?${query}`,
    ]
    return text(200, lines.join('\n'))
  }

  /** Resolves to the profile that the query of a request asks for, or to the reason why it is not made. */
  async make(kind: keyof typeof KINDS, query: URLSearchParams): Promise<HttpReply> {
    const seconds = Number(query.get('seconds') ?? SECONDS_DEFAULT)
    if (!Number.isInteger(seconds) || seconds < 1 || seconds > SECONDS_MAX) {
      return text(400, `seconds must be a number from 1 to ${SECONDS_MAX}`)
    }
    if (this.#isBusy) return text(503, 'another profile is being made: try again later')
    this.#isBusy = true
    try {
      return await this.#withThreads(async (threads) => {
        const name = query.get('thread') ?? threads.names[0]!
        if (!threads.names.includes(name)) {
          return text(400, `thread must be one of ${threads.names.join(', ')}`)
        }
        const body = await this.#profile(threads, name, kind, seconds)
        return { status: 200, contentType: 'application/json', body }
      })
    } catch (error) {
      return text(503, error instanceof Error ? error.message : String(error))
    } finally {
      this.#isBusy = false
    }
  }

  /** Ends the profile that is being made. */
  stop(): void {
    this.#isOver = true
    this.#end()
  }

  /** Few servers are ever profiled, so the inspector is loaded here. */
  async #withThreads<Result>(use: (threads: InspectedThreads) => Promise<Result>): Promise<Result> {
    const { InspectedThreads } = await import('./inspected-threads.ts')
    const threads = new InspectedThreads(this.#timers)
    try {
      return await use(threads)
    } finally {
      threads.close()
    }
  }

  async #profile(
    threads: InspectedThreads,
    name: string,
    kind: keyof typeof KINDS,
    seconds: number,
  ): Promise<string> {
    const { enable, start, stop, options } = KINDS[kind]
    await Promise.all([threads.ask(name, enable), threads.ask(name, start, options)])
    if (!this.#isOver) await this.#wait(seconds * 1000)
    const { profile } = (await threads.ask(name, stop)) as { readonly profile: object }
    return JSON.stringify(profile)
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const stop = this.#timers.after(ms, resolve)
      this.#end = () => {
        stop()
        resolve()
      }
    })
  }
}

function text(status: number, body: string): HttpReply {
  return { status, contentType: 'text/plain; charset=utf-8', body: `${body}\n` }
}
