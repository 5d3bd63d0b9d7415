/** An address and port of a span; port 0 = unknown. */
export interface SpanEndpoint {
  readonly address: string
  readonly port: number
}

/** A timed operation, as trace collectors accept it. */
export interface Span {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** 16 hexadecimal digits. */
  readonly spanId: string
  readonly name: string
  /** `server`: an answer to a client; `internal`: work of the program itself. */
  readonly kind: 'server' | 'internal'
  /** Milliseconds since the Unix epoch. */
  readonly startMs: number
  readonly durationMs: number
  readonly attributes: Readonly<Record<string, string>>
  /** '' = it succeeded. */
  readonly error: string
  readonly local?: SpanEndpoint | undefined
  readonly remote?: SpanEndpoint | undefined
}

/** Records spans of work. */
export interface SpanRecorder {
  /** Begins a span. Returns the function that ends it. `error`: '' = the work succeeded. */
  begin(name: string): (attributes: Span['attributes'], error: string) => void
}

/** How a kind of collector accepts spans: as the body of a POST. */
export interface SpanFormat {
  readonly contentType: string
  print(spans: readonly Span[], service: string): string
  /** Returns how many spans a collector refused, although it replied 200. `reply`: the body. */
  countRefused(reply: string): number
}
