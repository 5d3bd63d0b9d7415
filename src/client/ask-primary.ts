import { connect, type Socket } from 'node:net'
import { beginProgress, type WorkProgress } from '../base/telemetry/progress.ts'
import type { Timers } from '../base/timers.ts'
import type { HostPort } from '../dns/host-port.ts'
import { TransferFault, UNREACHED } from '../xfr/in/transfer-reader.ts'

const LENGTH_OCTETS = 2
/** Longest wait for a connection. */
const CONNECT_MS = 5000
const EMPTY = Buffer.alloc(0)

export interface Ask {
  readonly primary: HostPort
  /** Source address of the query; '' = any. */
  readonly source: string
  readonly query: Uint8Array
  /** Processes the next message; true = it was the last one. Throws TransferFault. */
  readonly take: (message: Uint8Array) => boolean
  readonly timers: Timers
  /** Maximum time without an octet, and maximum total time. */
  readonly idleMs: number
  readonly totalMs: number
  /** Maximum octets of all messages. */
  readonly octetsMax: number
  readonly signal?: AbortSignal | undefined
}

/**
 * Sends one query over TCP and processes the messages of its reply. Resolves after the last
 * message, rejects with a TransferFault.
 */
export function askPrimary(ask: Ask): Promise<void> {
  const { primary, source, timers, idleMs, totalMs, signal } = ask
  const from = source === '' ? {} : { localAddress: source }
  const socket = connect({ host: primary.host, port: primary.port, noDelay: true, ...from })
  let progress: WorkProgress | undefined
  socket.on('data', () => {
    // A primary that is away is no work.
    progress ??= beginProgress(`octets from ${primary.host}:`)
    progress.at(socket.bytesRead, 0)
  })
  return new Promise<void>((resolve, reject) => {
    const fail = (message: string): void => {
      reject(new TransferFault(message, socket.bytesRead > 0 ? -1 : UNREACHED))
    }
    const abort = (): void => fail('the transfer was cancelled')
    signal?.addEventListener('abort', abort)
    if (signal?.aborted) abort()
    const stopClock = timers.after(totalMs, () =>
      fail(`the transfer took longer than ${totalMs / 1000} s`),
    )
    const seconds = CONNECT_MS / 1000
    const stopWait = timers.after(CONNECT_MS, () => fail(`no connection within ${seconds} s`))
    socket.on('connect', stopWait)
    socket.setTimeout(idleMs, () => fail(`no data for ${idleMs / 1000} s`))
    socket.on('error', (error) => fail(error.message))
    socket.on('close', () => {
      stopClock()
      stopWait()
      signal?.removeEventListener('abort', abort)
      fail('the primary closed the connection')
    })
    readMessages(socket, ask, resolve, reject)
  }).finally(() => {
    progress?.end()
    socket.destroy()
  })
}

function readMessages(
  socket: Socket,
  { query, take, octetsMax }: Ask,
  resolve: () => void,
  reject: (error: unknown) => void,
): void {
  let pending: Buffer = EMPTY
  let octets = 0
  let isOver = false
  socket.on('connect', () => {
    const length = Buffer.from([query.length >> 8, query.length & 0xff])
    socket.write(Buffer.concat([length, query]))
  })
  socket.on('data', (chunk: Buffer) => {
    octets += chunk.length
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk])
    try {
      if (octets > octetsMax) throw new TransferFault(`the zone has more than ${octetsMax} octets`)
      for (let at = 0; !isOver; ) {
        const left = pending.length - at
        const end = left < LENGTH_OCTETS ? 0 : at + LENGTH_OCTETS + pending.readUInt16BE(at)
        if (end === 0 || end > pending.length) {
          pending = pending.subarray(at)
          return
        }
        isOver = take(pending.subarray(at + LENGTH_OCTETS, end))
        at = end
      }
      resolve()
    } catch (error) {
      isOver = true
      reject(error)
    }
  })
}
