import { LocalChannel } from '../../base/telemetry/local-channel.ts'
import type { SpanExporter } from '../../base/telemetry/spans/span-exporter.ts'
import { collectWhileServing } from '../../plugin/collect.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { addTap } from '../../plugin/query-tap.ts'
import { TRACED_DURATIONS } from '../../plugin/traced-durations.ts'
import { ENTRY_OCTETS_MAX, octetsOf, readEntry, type TracedQuery } from './entry.ts'
import { Sampler } from './sampler.ts'
import { scanTrace, type TraceSettings } from './settings.ts'
import { TraceIdLink, TraceIds } from './trace-ids.ts'
import { TraceTap } from './trace-tap.ts'

const ID_LABEL = 'trace/traceid'

/** `trace [ENDPOINT-TYPE] [ENDPOINT] { … }`: sends a span of each sampled query to a trace collector. */
export const trace: Directive = {
  name: 'trace',
  setup(c) {
    const settings = scanTrace(c.dispenser, (text) => c.warn(text, c.dispenser.position()))
    const lost = c.counters()
    lost.length = 1
    const output = new SpanOutput(c, settings)
    const receive = (octets: Uint8Array): void => output.receive(octets)
    const channel = c.octetsToControl(receive)
    if (settings.every === 0) return {}
    const out = channel ?? new LocalChannel(ENTRY_OCTETS_MAX, receive)
    const sampler = new Sampler(settings.every)
    const ids = new TraceIds(sampler, c.random)
    const tap = new TraceTap({ clock: c.clock, random: c.random, sampler, ids, out, lost })
    addTap(c.block.shared, tap)
    c.block.metadata.providers.set(ID_LABEL, (tx) => ids.print(tx))
    return [
      {
        handler: (next) => {
          tap.isEarly = c.block.metadata.readsAny([ID_LABEL])
          return tap.isEarly ? new TraceIdLink(next, ids) : next
        },
        seesNotify: true,
        start: () => output.start(),
        stop: () => output.stop(),
      },
      collectWhileServing(c, () => {
        lost.forEach((counts) => {
          output.lose(counts.take(0))
        })
      }),
    ]
  },
}

/** The control thread's end: reads entries and exports them. */
class SpanOutput {
  readonly #c: SetupContext
  readonly #settings: TraceSettings
  readonly #name: string
  #exporter: SpanExporter | undefined
  readonly #sent
  readonly #lost

  constructor(c: SetupContext, settings: TraceSettings) {
    this.#c = c
    this.#settings = settings
    const { origin, pathname } = settings.url
    this.#name = `${origin}${pathname}`
    this.#sent = c.metrics.counter(
      'sextant_trace_spans_total',
      'Counter of spans that a trace collector accepted.',
      ['endpoint'],
    )
    this.#lost = c.metrics.counter(
      'sextant_trace_lost_spans_total',
      'Counter of spans that were lost because the trace collector was away, slow or refused them.',
      ['endpoint'],
    )
  }

  async start(): Promise<void> {
    const { SpanExporter } = await import('../../base/telemetry/spans/span-exporter.ts')
    const { kind } = this.#settings
    const format =
      kind === 'otlp'
        ? (await import('../../base/telemetry/spans/otlp.ts')).OTLP
        : (await import('../../base/telemetry/spans/zipkin.ts')).ZIPKIN
    const { log, timers, random } = this.#c
    // Both series exist from the start, so that an alert needs no `absent`.
    for (const counter of [this.#sent, this.#lost]) counter.inc({ endpoint: this.#name }, 0)
    this.#exporter = new SpanExporter(
      { ...this.#settings, name: this.#name, format },
      {
        log,
        timers,
        seed: Math.floor(random() * 2 ** 32),
        sent: (spans) => this.#sent.inc({ endpoint: this.#name }, spans),
        lost: (spans) => this.lose(spans),
      },
    )
  }

  async stop(): Promise<void> {
    await this.#exporter?.stop()
  }

  receive(octets: Uint8Array): void {
    const entries = Buffer.from(octets.buffer, octets.byteOffset, octets.length)
    const exporter = this.#exporter
    for (let at = 0; at < entries.length; at += octetsOf(entries, at)) {
      if (exporter === undefined) this.lose(1)
      else if (exporter.hasRoom) this.#export(exporter, readEntry(entries, at))
      else exporter.lose(1)
    }
  }

  #export(exporter: SpanExporter, { span, labels }: TracedQuery): void {
    exporter.add(span)
    const { traceId, startMs, durationMs } = span
    const traced = { labels, seconds: durationMs / 1000, traceId, atMs: startMs + durationMs }
    this.#c.block.shared.find(TRACED_DURATIONS)?.addTraced(traced)
  }

  lose(spans: number): void {
    this.#lost.inc({ endpoint: this.#name }, spans)
  }
}
