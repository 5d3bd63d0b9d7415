import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

/** A span as a collector got it, whatever the format. */
export interface ReceivedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly name: string
  /** Milliseconds since the Unix epoch. */
  readonly startMs: number
  readonly durationMs: number
  readonly service: string
  readonly tags: Readonly<Record<string, string>>
  readonly error: string
}

interface ZipkinSpan {
  readonly traceId: string
  readonly id: string
  readonly name: string
  readonly timestamp: number
  readonly duration: number
  readonly localEndpoint: { readonly serviceName: string }
  readonly tags: Readonly<Record<string, string>>
}

interface OtlpAttribute {
  readonly key: string
  readonly value: { readonly stringValue: string }
}

interface OtlpRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly OtlpAttribute[] }
    readonly scopeSpans: readonly {
      readonly spans: readonly {
        readonly traceId: string
        readonly spanId: string
        readonly name: string
        readonly startTimeUnixNano: string
        readonly endTimeUnixNano: string
        readonly attributes: readonly OtlpAttribute[]
        readonly status: { readonly code?: number; readonly message?: string }
      }[]
    }[]
  }[]
}

const UPGRADE = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'

/** A trace collector, written apart from the code under test: Zipkin's API version 2, and OTLP in JSON. */
export class TraceCollector {
  readonly spans: ReceivedSpan[] = []
  /** Of requests that were replied to with 2xx. */
  readonly batches: number[] = []
  /** All requests, also those that failed. */
  requests = 0
  /** Status of replies; 0 = none, 'close' = the connection is closed, 'upgrade' = status 101. */
  status: number | 'close' | 'upgrade' = 202
  reply = ''
  #server: Server

  constructor(t: Test) {
    this.#server = this.#create()
    t.teardown(() => this.close())
  }

  #create(): Server {
    return createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => this.#onRequest(request.url ?? '', chunks, response))
    })
  }

  /** Resolves to its port. `port`: 0 = any. */
  listen(port = 0): Promise<number> {
    return new Promise((resolve) => {
      this.#server.listen(port, '127.0.0.1', () => {
        resolve((this.#server.address() as AddressInfo).port)
      })
    })
  }

  /** Ends the server and its connections; `listen` starts it again. */
  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
    this.#server = this.#create()
  }

  #onRequest(url: string, chunks: Buffer[], response: ServerResponse): void {
    this.requests++
    if (this.status === 'close') response.destroy()
    if (this.status === 'upgrade') response.socket?.write(UPGRADE)
    if (typeof this.status !== 'number' || this.status === 0) return
    response.statusCode = this.status
    if (this.status < 300) {
      const body: unknown = JSON.parse(Buffer.concat(chunks).toString())
      const spans =
        url === '/v1/traces' ? readOtlp(body as OtlpRequest) : readZipkin(body as ZipkinSpan[])
      this.spans.push(...spans)
      this.batches.push(spans.length)
    }
    response.end(this.reply)
  }
}

function readZipkin(spans: readonly ZipkinSpan[]): ReceivedSpan[] {
  return spans.map(({ traceId, id, name, timestamp, duration, localEndpoint, tags }) => {
    if (!Number.isInteger(timestamp) || !Number.isInteger(duration)) throw new Error('fractions')
    const { error = '', ...others } = tags
    const service = localEndpoint.serviceName
    const times = { startMs: timestamp / 1000, durationMs: duration / 1000 }
    return { traceId, spanId: id, name, ...times, service, tags: others, error }
  })
}

function readOtlp({ resourceSpans }: OtlpRequest): ReceivedSpan[] {
  const tagsOf = (attributes: readonly OtlpAttribute[]) =>
    Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue]))
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        traceId: span.traceId,
        spanId: span.spanId,
        name: span.name,
        startMs: Number(BigInt(span.startTimeUnixNano)) / 1e6,
        durationMs: Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1e6,
        service: tagsOf(resource.attributes)['service.name'] ?? '',
        tags: tagsOf(span.attributes),
        error: span.status.code === 2 ? (span.status.message ?? '') : '',
      })),
    ),
  )
}
