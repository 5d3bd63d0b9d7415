import { Backoff } from '../../backoff.ts'
import { Random } from '../../random.ts'
import { reasonOf } from '../../system-error.ts'
import type { Timers } from '../../timers.ts'
import type { Logger } from '../log.ts'
import { Poster } from './poster.ts'
import type { Span, SpanFormat } from './span.ts'

export interface ExportSettings {
  readonly url: URL
  /** For log lines. */
  readonly name: string
  readonly format: SpanFormat
  readonly service: string
  /** Most spans that wait; more are lost. */
  readonly backlogMax: number
  /** Most spans of a request. When so many wait, they are sent. */
  readonly batchMax: number
  /** Longest time that fewer spans wait for more. */
  readonly intervalMs: number
}

interface ExportParts {
  readonly log: Logger
  readonly timers: Timers
  /** Seed of the waits between attempts. */
  readonly seed: number
  readonly sent: (spans: number) => void
  readonly lost: (spans: number) => void
}

/** Longest time to send the backlog when the instance ends. */
const FINISH_MS = 1000
/** Statuses after which the same request may succeed later, besides all from 500 on. */
const LATER = new Set([408, 425, 429])

/**
 * Sends spans to a collector. If it is away, slow or closes connections, spans are lost, and callers never wait: the
 * backlog is bounded. The first failure is logged, and the next request that the collector accepts.
 */
export class SpanExporter {
  readonly #settings: ExportSettings
  readonly #parts: ExportParts
  readonly #poster: Poster
  readonly #backoff: Backoff
  readonly #waiting: Span[] = []
  #sending: Promise<void> | undefined
  #cancelWait: (() => void) | undefined
  /** The last attempt failed. */
  #isOut = false
  #lostSinceOut = 0
  #isStopping = false

  constructor(settings: ExportSettings, parts: ExportParts) {
    this.#settings = settings
    this.#parts = parts
    this.#poster = new Poster(settings.url, parts.timers)
    this.#backoff = new Backoff(new Random(parts.seed))
  }

  get hasRoom(): boolean {
    return !this.#isStopping && this.#waiting.length < this.#settings.backlogMax
  }

  add(span: Span): void {
    if (!this.hasRoom) {
      this.lose(1)
      return
    }
    this.#waiting.push(span)
    this.#plan()
  }

  /** Counts spans for which there was no room. */
  lose(spans: number): void {
    if (this.#isOut) this.#lostSinceOut += spans
    this.#parts.lost(spans)
  }

  /** Sends the backlog. Resolves once the collector has it, or after a second. */
  async stop(): Promise<void> {
    this.#isStopping = true
    this.#cancelWait?.()
    this.#poster.keepProcess()
    let isLate = false
    const stopTimer = this.#parts.timers.after(FINISH_MS, () => {
      isLate = true
      this.#poster.cancel()
    })
    await this.#sending
    while (this.#waiting.length > 0 && !isLate && !this.#isOut) await this.#sendOne()
    stopTimer()
    this.#poster.close()
    this.lose(this.#waiting.length)
    this.#waiting.length = 0
  }

  /** Plans the next request, if spans wait and none is planned. */
  #plan(): void {
    if (this.#isStopping || this.#sending !== undefined || this.#waiting.length === 0) return
    const { batchMax, backlogMax, intervalMs } = this.#settings
    const send = (): void => this.#send()
    if (this.#isOut) this.#cancelWait ??= this.#parts.timers.after(this.#backoff.next(), send)
    else if (this.#waiting.length >= Math.min(batchMax, backlogMax)) send()
    else this.#cancelWait ??= this.#parts.timers.after(intervalMs, send)
  }

  #send(): void {
    this.#cancelWait?.()
    this.#cancelWait = undefined
    this.#sending = this.#sendOne().then(() => {
      this.#sending = undefined
      this.#plan()
    })
  }

  /** Sends one batch. Never rejects. */
  async #sendOne(): Promise<void> {
    const { format, service, batchMax } = this.#settings
    const batch = this.#waiting.slice(0, batchMax)
    try {
      const { status, text } = await this.#poster.post(
        format.contentType,
        format.print(batch, service),
      )
      if (status >= 200 && status < 300) {
        this.#waiting.splice(0, batch.length)
        this.#onAccepted(batch.length, Math.min(batch.length, format.countRefused(text)))
        return
      }
      if (status < 500 && !LATER.has(status)) {
        // The same request would be refused again.
        this.#waiting.splice(0, batch.length)
        this.lose(batch.length)
      }
      this.#onFailure(`status ${status}`)
    } catch (error) {
      this.#onFailure(reasonOf(error))
    }
  }

  #onAccepted(spans: number, refused: number): void {
    const { log, sent } = this.#parts
    sent(spans - refused)
    this.lose(refused)
    this.#backoff.reset()
    if (!this.#isOut) return
    const { name } = this.#settings
    log.info(`${name} accepts spans again: lost ${this.#lostSinceOut}`, 'trace-connected')
    this.#isOut = false
    this.#lostSinceOut = 0
  }

  #onFailure(reason: string): void {
    if (this.#isOut || this.#isStopping) {
      this.#isOut = true
      return
    }
    this.#isOut = true
    const { name } = this.#settings
    this.#parts.log.warning(
      `${name} accepts no spans, trying again: ${reason}`,
      'trace-disconnected',
    )
  }
}
