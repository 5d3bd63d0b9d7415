import { isIPv6 } from 'node:net'
import type { Span, SpanEndpoint, SpanFormat } from './span.ts'

/** Zipkin's version 2, in JSON: https://zipkin.io/zipkin-api/#/default/post_spans. */
export const ZIPKIN: SpanFormat = {
  contentType: 'application/json',
  print: (spans, service) => JSON.stringify(spans.map((span) => spanOf(span, service))),
  countRefused: () => 0,
}

function spanOf(span: Span, serviceName: string): unknown {
  const { traceId, spanId, name, kind, startMs, durationMs, attributes, error } = span
  return {
    traceId,
    id: spanId,
    // A span without a kind is local.
    ...(kind === 'server' ? { kind: 'SERVER' } : {}),
    name,
    timestamp: Math.round(startMs * 1000),
    // Zero would mean that the duration is unknown.
    duration: Math.max(1, Math.round(durationMs * 1000)),
    localEndpoint: { serviceName, ...endpointOf(span.local) },
    ...(span.remote === undefined ? {} : { remoteEndpoint: endpointOf(span.remote) }),
    tags: error === '' ? attributes : { ...attributes, error },
  }
}

function endpointOf(endpoint: SpanEndpoint | undefined): Record<string, string | number> {
  if (endpoint === undefined) return {}
  const { address, port } = endpoint
  return { [isIPv6(address) ? 'ipv6' : 'ipv4']: address, ...(port === 0 ? {} : { port }) }
}
