import type { Timers } from '../../timers.ts'
import type { Logger } from '../log.ts'
import type { MetricsRegistry } from '../metrics.ts'
import type { CollectorKind } from './collector-url.ts'
import { OTLP } from './otlp.ts'
import { type ExportSettings, SpanExporter } from './span-exporter.ts'
import { ZIPKIN } from './zipkin.ts'

interface CollectorSettings extends Omit<ExportSettings, 'name' | 'format'> {
  readonly kind: CollectorKind
}

interface OpenParts {
  readonly log: Logger
  readonly timers: Timers
  readonly metrics: MetricsRegistry
  readonly seed: number
}

/** Limits if no others are set, as in Zipkin's library for Go. */
export const EXPORT_DEFAULTS = { backlogMax: 1000, batchMax: 100, intervalMs: 1000 } as const

/** Returns an exporter whose spans are counted by the endpoint. */
export function openExporter(settings: CollectorSettings, parts: OpenParts): SpanExporter {
  const { kind, url } = settings
  const { metrics } = parts
  const endpoint = `${url.origin}${url.pathname}`
  const sent = metrics.counter(
    'sextant_trace_spans_total',
    'Counter of spans that a trace collector accepted.',
    ['endpoint'],
  )
  const lost = metrics.counter(
    'sextant_trace_lost_spans_total',
    'Counter of spans that were lost because the trace collector was away, slow or refused them.',
    ['endpoint'],
  )
  // Both series exist from the start, so that an alert needs no `absent`.
  for (const counter of [sent, lost]) counter.inc({ endpoint }, 0)
  return new SpanExporter(
    { ...settings, name: endpoint, format: kind === 'otlp' ? OTLP : ZIPKIN },
    {
      ...parts,
      sent: (spans) => sent.inc({ endpoint }, spans),
      lost: (spans) => lost.inc({ endpoint }, spans),
    },
  )
}
