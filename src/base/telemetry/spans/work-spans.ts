import { randomBytes } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import type { Span, SpanRecorder } from './span.ts'

/** Records spans of work other than queries. Each has a trace of its own. */
export class WorkSpans implements SpanRecorder {
  readonly #clock: Clock
  readonly #add: (span: Span) => void

  constructor(clock: Clock, add: (span: Span) => void) {
    this.#clock = clock
    this.#add = add
  }

  begin(name: string): (attributes: Span['attributes'], error: string) => void {
    const startMs = this.#clock.now()
    const startedMs = this.#clock.monotonic()
    return (attributes, error) => {
      this.#add({
        traceId: randomBytes(16).toString('hex'),
        spanId: randomBytes(8).toString('hex'),
        name,
        kind: 'internal',
        startMs,
        durationMs: this.#clock.monotonic() - startedMs,
        attributes,
        error,
      })
    }
  }
}
