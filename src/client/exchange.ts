import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import type { HostPort } from '../dns/host-port.ts'

/** Destination, source and signal of an exchange. */
interface ExchangeOptions {
  readonly server: HostPort
  readonly timeoutMs: number
  /** Source address; absent or '' = any. */
  readonly source?: string
  /** Aborts the exchange. */
  readonly signal?: AbortSignal | undefined
}

/** Returns true if the octets are the expected reply. */
type IsReply = (octets: Uint8Array) => boolean

/** Reply octets, or why no reply arrived. */
export type ExchangeResult = Uint8Array | { readonly failure: string }

/** The failure if no reply arrived in time. */
export const TIMED_OUT = 'timed out'
const BROKEN_OFF = 'cancelled'

/**
 * Sends a query over UDP, up to `tries` times. Waits for the reply from exactly that address and
 * port; other datagrams are ignored.
 */
export function exchangeUdp(
  query: Uint8Array,
  { server, source = '', timeoutMs, signal }: ExchangeOptions,
  tries: number,
  isReply: IsReply,
): Promise<ExchangeResult> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve({ failure: BROKEN_OFF })
    const socket = createSocket(server.host.includes(':') ? 'udp6' : 'udp4')
    let left = tries
    let isDone = false
    let timer: NodeJS.Timeout | undefined
    const finish = (result: ExchangeResult): void => {
      if (isDone) return
      isDone = true
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      socket.close()
      resolve(result)
    }
    const abort = (): void => finish({ failure: BROKEN_OFF })
    const send = (): void => {
      if (isDone) return
      if (left === 0) {
        finish({ failure: TIMED_OUT })
        return
      }
      left -= 1
      timer = setTimeout(send, timeoutMs)
      socket.send(query, () => {})
    }
    signal?.addEventListener('abort', abort)
    socket.on('error', (error) => finish({ failure: reasonOf(error) }))
    socket.on('message', (octets) => {
      if (isReply(octets)) finish(octets)
    })
    // A connected socket receives only from its peer, and gets an error if no process listens on
    // the peer's port.
    socket.once('connect', send)
    const connectSocket = (): void => {
      if (!isDone) socket.connect(server.port, server.host)
    }
    if (source === '') connectSocket()
    else socket.bind(0, source, connectSocket)
  })
}

/** Sends a query over a new TCP connection (RFC 7766) and returns the first message. */
export function exchangeTcp(
  query: Uint8Array,
  { server, source = '', timeoutMs, signal }: ExchangeOptions,
  isReply: IsReply,
): Promise<ExchangeResult> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve({ failure: BROKEN_OFF })
    const from = source === '' ? {} : { localAddress: source }
    const socket = connect({ ...server, ...from })
    let received = Buffer.alloc(0)
    const finish = (result: ExchangeResult): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      socket.destroy()
      resolve(result)
    }
    const abort = (): void => finish({ failure: BROKEN_OFF })
    const timer = setTimeout(() => finish({ failure: TIMED_OUT }), timeoutMs)
    signal?.addEventListener('abort', abort)
    socket.on('error', (error) => finish({ failure: reasonOf(error) }))
    socket.once('end', () => finish({ failure: 'end of file' }))
    socket.once('connect', () => {
      socket.write(Buffer.concat([Buffer.from([query.length >> 8, query.length]), query]))
    })
    socket.on('data', (octets) => {
      received = Buffer.concat([received, octets])
      const end = received.length < 2 ? Number.POSITIVE_INFINITY : 2 + received.readUInt16BE(0)
      if (received.length < end) return
      const reply = received.subarray(2, end)
      finish(
        isReply(reply) ? reply : { failure: 'the reply is malformed or does not match the query' },
      )
    })
  })
}

function reasonOf(error: NodeJS.ErrnoException): string {
  if (error.code === 'ECONNREFUSED') return 'connection refused'
  return error.code ?? error.message
}
