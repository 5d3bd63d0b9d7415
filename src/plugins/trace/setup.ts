import { LocalChannel } from '../../base/telemetry/local-channel.ts'
import type { SpanExporter } from '../../base/telemetry/spans/span-exporter.ts'
import { collectWhileServing } from '../../plugin/collect.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { addTap } from '../../plugin/query-tap.ts'
import { TRACED_DURATIONS } from '../../plugin/traced-durations.ts'
import { WORK_SPANS } from '../../plugin/work-spans.ts'
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
    const life = { start: () => output.start(), stop: () => output.stop() }
    if (settings.every === 0) return life
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
        ...life,
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
  #exporter: SpanExporter | undefined

  constructor(c: SetupContext, settings: TraceSettings) {
    this.#c = c
    this.#settings = settings
  }

  async start(): Promise<void> {
    // Data threads do not need them.
    const { openExporter } = await import('../../base/telemetry/spans/open-exporter.ts')
    const { WorkSpans } = await import('../../base/telemetry/spans/work-spans.ts')
    const { log, timers, random, metrics, clock, block } = this.#c
    const parts = { log, timers, metrics, seed: Math.floor(random() * 2 ** 32) }
    const exporter = openExporter(this.#settings, parts)
    this.#exporter = exporter
    block.shared.provide(WORK_SPANS, new WorkSpans(clock, (span) => exporter.add(span)))
  }

  async stop(): Promise<void> {
    await this.#exporter?.stop()
  }

  receive(octets: Uint8Array): void {
    const entries = Buffer.from(octets.buffer, octets.byteOffset, octets.length)
    const exporter = this.#exporter
    if (exporter === undefined) return
    for (let at = 0; at < entries.length; at += octetsOf(entries, at)) {
      if (exporter.hasRoom) this.#export(exporter, readEntry(entries, at))
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
    this.#exporter?.lose(spans)
  }
}
