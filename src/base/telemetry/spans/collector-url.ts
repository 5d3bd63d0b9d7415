export type CollectorKind = 'zipkin' | 'otlp'

const PATHS = { zipkin: '/api/v2/spans', otlp: '/v1/traces' } as const

/** Reads `HOST:PORT`, or a URL of HTTP or HTTPS. Returns undefined if it is neither. */
export function scanCollectorUrl(kind: CollectorKind, text: string): URL | undefined {
  const isUrl = /^https?:\/\//i.test(text)
  // `new URL` would move the end of a wrong host to the path.
  if (!isUrl && /[\s/?#@\\]/.test(text)) return undefined
  const full = isUrl ? text : `http://${text}${PATHS[kind]}`
  if (!URL.canParse(full)) return undefined
  const url = new URL(full)
  // OTLP endpoints are often written without the path (OpenTelemetry's base endpoints).
  if (kind === 'otlp' && url.pathname === '/') url.pathname = PATHS.otlp
  return url
}
