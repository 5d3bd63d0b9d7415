import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
} from 'node:http2'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { type Attempt, type Begin, hostOf, serverNameOf } from './begin.ts'
import type { ProbeOutcome } from './probe.ts'

type GrpcAttempt = Attempt<'GRPC' | 'GRPCS'>

const PATH = '/grpc.health.v1.Health/Check'
/** A frame of gRPC: compression flag u8, length u32, message. */
const FRAME_HEAD_OCTETS = 5
/** Longer than any HealthCheckResponse in its frame. */
const RESPONSE_OCTETS_MAX = 64
/** Values of HealthCheckResponse.ServingStatus. */
const SERVING_STATUSES = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN']
/** Tag of HealthCheckRequest.service: field 1, a string. */
const SERVICE_TAG = 0x0a
/** Tag of HealthCheckResponse.status: field 1, a number. */
const STATUS_TAG = 0x08
/** Headers that gRPC or HTTP/2 sets itself or forbids (RFC 9113 section 8.2.2). */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  'content-type',
  'grpc-accept-encoding',
  'grpc-encoding',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
])

/**
 * Calls `grpc.health.v1.Health/Check` over HTTP/2, with TLS for GRPCS. Only the status SERVING is
 * healthy.
 */
export const beginGrpc: Begin<'GRPC' | 'GRPCS'> = (attempt, { onSocket, onError, onDone }) => {
  const socket = openSocket(attempt)
  socket.on('error', onError)
  onSocket(socket)
  const session = openSession(attempt, socket)
  session.on('error', onError)
  const stream = sendRequest(session, attempt)
  const response = new Response(onDone)
  stream.on('error', onError)
  stream.on('response', (headers) => response.putHeaders(headers))
  stream.on('trailers', (headers) => response.putHeaders(headers))
  stream.on('data', (chunk: Buffer) => response.putData(chunk))
  stream.on('end', () => response.finish())
  // Without an error if the server closes the connection in good order.
  stream.on('close', () => onError(new Error('closed')))
  return () => {
    session.destroy()
    socket.destroy()
  }
}

function openSocket({ ip, check, hostname }: GrpcAttempt): Socket {
  const to = { host: ip, port: check.port }
  if (check.protocol === 'GRPC') return connectTcp(to)
  return connectTls({
    ...to,
    servername: serverNameOf(hostname),
    rejectUnauthorized: !check.allowsInsecureCertificate,
    ALPNProtocols: ['h2'],
  })
}

function openSession(attempt: GrpcAttempt, socket: Socket): ClientHttp2Session {
  const scheme = attempt.check.protocol === 'GRPC' ? 'http' : 'https'
  return connectHttp2(`${scheme}://${hostOf({ ...attempt, hostname: '' })}`, {
    createConnection: () => socket,
    settings: { enablePush: false },
    // Megabytes.
    maxSessionMemory: 1,
  })
}

function sendRequest(session: ClientHttp2Session, attempt: GrpcAttempt): ClientHttp2Stream {
  const extra = [...attempt.headers].map(([name, value]) => [name.toLowerCase(), value] as const)
  const stream = session.request({
    ...Object.fromEntries(extra.filter(([name]) => !OWN_HEADERS.has(name))),
    ':method': 'POST',
    ':path': PATH,
    ':authority': hostOf(attempt),
    'content-type': 'application/grpc',
    te: 'trailers',
    'user-agent': 'sextant-probe',
  })
  stream.end(composeRequest(attempt.check.grpcService ?? ''))
  return stream
}

/** Composes a HealthCheckRequest in its frame. `service`: '' = the server as a whole. */
function composeRequest(service: string): Buffer {
  const name = Buffer.from(service)
  // A length as a varint of at most 14 bits.
  const { length } = name
  const size = length < 0x80 ? [length] : [(length & 0x7f) | 0x80, length >> 7]
  const message = length === 0 ? name : Buffer.concat([Buffer.from([SERVICE_TAG, ...size]), name])
  const head = Buffer.alloc(FRAME_HEAD_OCTETS)
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}

/** Collects the parts of one response. */
class Response {
  readonly #onDone: (outcome: ProbeOutcome) => void
  #httpStatus = 0
  /** Header or trailer `grpc-status`; -1 = missing. */
  #grpcStatus = -1
  #body = Buffer.alloc(0)

  constructor(onDone: (outcome: ProbeOutcome) => void) {
    this.#onDone = onDone
  }

  putHeaders(headers: {
    readonly [name: string]: string | number | readonly string[] | undefined
  }) {
    const httpStatus = Number(headers[':status'] ?? 0)
    if (httpStatus > 0) this.#httpStatus = httpStatus
    const { 'grpc-status': grpcStatus } = headers
    if (/^\d{1,3}$/.test(String(grpcStatus))) this.#grpcStatus = Number(grpcStatus)
  }

  putData(chunk: Buffer): void {
    this.#body = Buffer.concat([this.#body, chunk])
    if (this.#body.length > RESPONSE_OCTETS_MAX) this.finish()
  }

  finish(): void {
    // Without a header, the connection has ended, which the stream reports.
    if (this.#httpStatus === 0) return
    const reason = this.#reason()
    if (reason === '') this.#onDone({ kind: 'healthy', httpStatus: 0 })
    else this.#onDone({ kind: 'unhealthy', httpStatus: 0, reason })
  }

  /** Returns why the response is not healthy; '' = it is. */
  #reason(): string {
    if (this.#httpStatus !== 200) return `status ${this.#httpStatus}`
    if (this.#grpcStatus > 0) return `gRPC status ${this.#grpcStatus}`
    const status = readStatus(this.#body)
    if (status === undefined || this.#grpcStatus < 0)
      return 'the reply is not a gRPC health response'
    return status === 'SERVING' ? '' : `health ${status}`
  }
}

/** Reads a HealthCheckResponse in its frame; undefined = it is malformed. */
function readStatus(frame: Buffer): string | undefined {
  const message = frame.subarray(FRAME_HEAD_OCTETS)
  if (frame.length < FRAME_HEAD_OCTETS || frame[0] !== 0) return undefined
  if (frame.readUInt32BE(1) !== message.length) return undefined
  // Protocol Buffers omit a field with the value 0.
  if (message.length === 0) return SERVING_STATUSES[0]
  const [tag, status = -1] = message
  return message.length === 2 && tag === STATUS_TAG ? SERVING_STATUSES[status] : undefined
}
