import { scanJsonText } from '../../json-text.ts'
import { PROGRAM, VERSION } from '../../version.ts'
import type { Span, SpanFormat } from './span.ts'

const KINDS = { internal: 1, server: 2 } as const
const STATUS_ERROR = 2

/** OTLP over HTTP, in JSON: https://opentelemetry.io/docs/specs/otlp/#otlphttp. */
export const OTLP: SpanFormat = {
  contentType: 'application/json',
  print: (spans, service) =>
    JSON.stringify({
      resourceSpans: [
        {
          resource: { attributes: attributesOf({ 'service.name': service }) },
          scopeSpans: [
            {
              scope: { name: PROGRAM, version: VERSION },
              spans: spans.map((span) => spanOf(span)),
            },
          ],
        },
      ],
    }),
  countRefused: (reply) => {
    const { partialSuccess } = (scanJsonText(reply) ?? {}) as { partialSuccess?: unknown }
    const { rejectedSpans } = (partialSuccess ?? {}) as { rejectedSpans?: unknown }
    // Integers of 64 bits are strings in this JSON.
    const count = typeof rejectedSpans === 'object' ? 0 : Number(rejectedSpans ?? 0)
    return Number.isSafeInteger(count) && count > 0 ? count : 0
  },
}

function spanOf({ local, remote, ...span }: Span): unknown {
  const addresses: Record<string, string> = {}
  if (local !== undefined) {
    addresses['server.address'] = local.address
    addresses['server.port'] = String(local.port)
  }
  if (remote !== undefined) {
    addresses['client.address'] = remote.address
    addresses['client.port'] = String(remote.port)
  }
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    name: span.name,
    kind: KINDS[span.kind],
    startTimeUnixNano: nanoseconds(span.startMs),
    endTimeUnixNano: nanoseconds(span.startMs + span.durationMs),
    attributes: attributesOf({ ...span.attributes, ...addresses }),
    status: span.error === '' ? {} : { code: STATUS_ERROR, message: span.error },
  }
}

/** Splits off whole milliseconds: a number has too few digits for all nanoseconds. */
function nanoseconds(ms: number): string {
  const whole = Math.floor(ms)
  const rest = Math.min(999_999, Math.round((ms - whole) * 1e6))
  return `${whole}${String(rest).padStart(6, '0')}`
}

function attributesOf(attributes: Readonly<Record<string, string>>): unknown[] {
  return Object.entries(attributes).map(([key, stringValue]) => ({ key, value: { stringValue } }))
}
