import { type NodeWorker, Session } from 'node:inspector'
import type { Timers } from '../../base/timers.ts'

/** Name of the control thread. */
const CONTROL = 'main'
/** Of workers: `[worker 3] sextant data`. */
const DATA_THREAD = /^\[worker (\d+)\] sextant data$/
/** An idle data thread sleeps for up to a second. */
const ANSWER_MS_MAX = 10_000

/** Receives the answer of a data thread. */
type Hear = (error: string | undefined, result: unknown) => void

/**
 * Inspector sessions with this thread and with the data threads, which answer between two batches. Methods are those of
 * V8 (https://chromedevtools.github.io/devtools-protocol/v8/).
 */
export class InspectedThreads {
  readonly #timers: Timers
  readonly #session = new Session()
  /** Sessions with data threads, by the number of the worker. */
  readonly #sessions = new Map<number, string>()
  readonly #asked = new Map<number, Hear>()
  #lastId = 0

  /** `close` ends the sessions, and what they started. */
  constructor(timers: Timers) {
    this.#timers = timers
    const session = this.#session
    session.connect()
    session.on('NodeWorker.attachedToWorker', ({ params }) => this.#add(params))
    session.on('NodeWorker.receivedMessageFromWorker', ({ params }) => this.#receive(params))
    // Reports the workers before it returns.
    session.post('NodeWorker.enable', { waitForDebuggerOnStart: false })
  }

  /** `main`, then the data threads in the order of their start: `0`, `1` … */
  get names(): readonly string[] {
    return [CONTROL, ...[...this.#sessions].map((_, index) => String(index))]
  }

  /** Calls a method of one thread; resolves to its result. `name`: one of `names`. */
  ask(name: string, method: string, params: object = {}): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (name === CONTROL) {
        this.#session.post(method, params, (error: Error | null, result?: object) => {
          if (error === null) resolve(result)
          else reject(new Error(`${method}: ${error.message}`))
        })
        return
      }
      const id = ++this.#lastId
      const hear: Hear = (error, result) => {
        this.#asked.delete(id)
        stop()
        if (error === undefined) resolve(result)
        else reject(new Error(`${method} of data thread ${name}: ${error}`))
      }
      const stop = this.#timers.after(ANSWER_MS_MAX, () => hear('no answer', undefined))
      this.#asked.set(id, hear)
      const sorted = [...this.#sessions].sort(([a], [b]) => a - b)
      const message = JSON.stringify({ id, method, params })
      const sessionId = sorted[Number(name)]![1]
      this.#session.post('NodeWorker.sendMessageToWorker', { sessionId, message })
    })
  }

  close(): void {
    this.#session.post('NodeWorker.disable')
    this.#session.disconnect()
  }

  #add({ sessionId, workerInfo }: NodeWorker.AttachedToWorkerEventDataType): void {
    const [, number] = DATA_THREAD.exec(workerInfo.title) ?? []
    if (number !== undefined) this.#sessions.set(Number(number), sessionId)
  }

  #receive({ message }: NodeWorker.ReceivedMessageFromWorkerEventDataType): void {
    const { id, result, error } = JSON.parse(message)
    this.#asked.get(id)?.(error?.message, result)
  }
}
