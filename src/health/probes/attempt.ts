import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect, isIP, type Socket } from 'node:net'
import type { Timers } from '../../base/timers.ts'
import type { HealthCheck } from '../../dnsrecord/health-check.ts'
import { printFault } from './print-fault.ts'
import type { ProbeOutcome } from './probe.ts'

/** Timeout of the connection; the same as upstream. */
const CONNECT_MS = 3000
/**
 * Timeout of a whole probe attempt, connection and TLS included, even if the server sends slowly.
 */
const TOTAL_MS_MAX = 8000
/** Maximum length of a response's head. The body is not read. */
const HEAD_OCTETS_MAX = 8192
const HEALTHY_STATUSES: ReadonlySet<number> = new Set([200, 201])

/** One probe attempt on one IP address. */
export interface AttemptOptions {
  readonly check: HealthCheck
  readonly ip: string
  /** Host name for the Host header and SNI; '' = use the address. */
  readonly hostname: string
  readonly headers: ReadonlyMap<string, string>
  readonly timers: Timers
  readonly signal: AbortSignal
}

/**
 * Connects and, except for TCP, sends a GET request. The statuses 200 and 201 are healthy, as
 * upstream. Redirects are not followed. Never rejects.
 */
export function attempt(options: AttemptOptions): Promise<ProbeOutcome> {
  return new Promise((resolve) => {
    const { check, timers, signal } = options
    const totalMs = Math.min(TOTAL_MS_MAX, check.intervalMs)
    let finish = (_outcome: ProbeOutcome): void => {}
    const fail = (reason: string): void => finish({ kind: 'unhealthy', httpStatus: 0, reason })
    const abort = (): void => finish({ kind: 'skipped', reason: 'it was cancelled' })
    const cancels = [
      timers.after(totalMs, () => fail(`no answer within ${totalMs / 1000} s`)),
      () => signal.removeEventListener('abort', abort),
    ]
    const begin = check.protocol === 'TCP' ? openConnection : sendRequest
    const end = begin(options, {
      onSocket: (socket) => {
        const connectMs = Math.min(CONNECT_MS, totalMs)
        const message = `no connection within ${connectMs / 1000} s`
        const cancel = timers.after(connectMs, () => fail(message))
        cancels.push(cancel)
        socket.once('connect', cancel)
      },
      onError: (error) => fail(printFault(error)),
      onDone: (outcome) => finish(outcome),
    })
    finish = (outcome) => {
      finish = () => {}
      for (const cancel of cancels) cancel()
      end()
      resolve(outcome)
    }
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort)
  })
}

interface Listener {
  readonly onSocket: (socket: Socket) => void
  readonly onError: (error: Error) => void
  readonly onDone: (outcome: ProbeOutcome) => void
}

/** Begins an attempt; returns the function that ends it. Later errors are ignored. */
type Begin = (options: AttemptOptions, listener: Listener) => () => void

const openConnection: Begin = ({ ip, check }, { onSocket, onError, onDone }) => {
  const socket = connect({ host: ip, port: check.port })
  socket.on('error', onError)
  socket.once('connect', () => onDone({ kind: 'healthy', httpStatus: 0 }))
  onSocket(socket)
  return () => socket.destroy()
}

const sendRequest: Begin = ({ ip, check, hostname, headers }, { onSocket, onError, onDone }) => {
  const isTls = check.protocol === 'HTTPS'
  const host = hostname === '' ? bracket(ip) : hostname
  const send = isTls ? httpsRequest : httpRequest
  const request = send({
    host: ip,
    port: check.port,
    path: check.path.startsWith('?') ? `/${check.path}` : check.path,
    method: 'GET',
    headers: { ...Object.fromEntries(headers), Host: host, 'User-Agent': 'sextant-probe' },
    // A new connection each time, because the probe checks that the server accepts connections.
    agent: false,
    maxHeaderSize: HEAD_OCTETS_MAX,
    ...(isTls ? { rejectUnauthorized: !check.allowsInsecureCertificate } : {}),
    // RFC 6066 section 3: SNI does not carry addresses.
    ...(isTls ? { servername: isIP(hostname) === 0 ? hostname : '' } : {}),
  })
  request.on('socket', onSocket)
  request.on('error', onError)
  request.on('response', ({ statusCode: httpStatus = 0 }) => {
    if (HEALTHY_STATUSES.has(httpStatus)) onDone({ kind: 'healthy', httpStatus })
    else onDone({ kind: 'unhealthy', httpStatus, reason: `status ${httpStatus}` })
  })
  request.on('upgrade', (_response, socket) => {
    socket.destroy()
    onDone({ kind: 'unhealthy', httpStatus: 101, reason: 'status 101' })
  })
  request.end()
  return () => request.destroy()
}

function bracket(ip: string): string {
  return isIP(ip) === 6 ? `[${ip}]` : ip
}
