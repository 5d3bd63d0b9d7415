import type { Socket } from 'node:net'
import type { Clock } from '../base/clock.ts'
import type { Timers } from '../base/timers.ts'
import { isRecord } from './datum.ts'
import { JsonObjectSplitter } from './json-splitter.ts'

/** Longest message in octets, in either direction: a reply has whole tables. */
const MESSAGE_OCTETS_MAX = 64 * 1024 * 1024
const DEPTH_MAX = 64
const CHECK_MS = 5000
/** Silence of the server after which it is asked for an echo. */
const PROBE_MS = 10_000
/** Time without a reply to a request, or without any data, after which the connection is closed. */
const TIMEOUT_MS = 30_000

/** A request that the server refused, or that it did not answer. */
export class OvsdbError extends Error {
  /** As in RFC 7047: `constraint violation`; '' = the connection broke, and the request may be done. */
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.name = 'OvsdbError'
    this.code = code
  }
}

interface OvsdbConnectionEnv {
  readonly clock: Clock
  readonly timers: Timers
  /** Called for each notification of the server. */
  readonly onNotification: (method: string, params: readonly unknown[]) => void
  /** Called once, with the reason. */
  readonly onClose: (reason: string) => void
}

interface PendingRequest {
  readonly sentMs: number
  readonly take: (result: unknown) => void
  readonly reject: (error: Error) => void
}

/** JSON-RPC 1.0 over an open stream (RFC 7047 section 4). */
export class OvsdbConnection {
  readonly #socket: Socket
  readonly #env: OvsdbConnectionEnv
  readonly #splitter = new JsonObjectSplitter(MESSAGE_OCTETS_MAX, DEPTH_MAX)
  /** By id, the oldest first. */
  readonly #pending = new Map<number, PendingRequest>()
  readonly #stopChecks: () => void
  #nextId = 0
  #heardMs: number
  #isProbing = false
  #isClosed = false

  constructor(socket: Socket, env: OvsdbConnectionEnv) {
    this.#socket = socket
    this.#env = env
    this.#heardMs = env.clock.monotonic()
    this.#stopChecks = env.timers.every(CHECK_MS, () => this.#check())
    socket.setNoDelay(true)
    socket.on('data', (chunk) => this.#receive(chunk))
    socket.on('error', (error) => this.close(error.message))
    socket.on('close', () => this.close('the server closed the connection'))
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /**
   * Sends a request. `read` gets the result before any later message is taken, and what it throws
   * rejects. Rejects with OvsdbError if the server refuses the request or the connection breaks.
   */
  request<T>(method: string, params: readonly unknown[], read: (result: unknown) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) {
        reject(new OvsdbError('', 'the connection is closed'))
        return
      }
      const id = this.#nextId++
      const take = (result: unknown): void => {
        try {
          resolve(read(result))
        } catch (error) {
          reject(error)
        }
      }
      this.#pending.set(id, { sentMs: this.#env.clock.monotonic(), take, reject })
      this.#send({ method, params, id })
    })
  }

  close(reason: string): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#stopChecks()
    this.#socket.destroy()
    for (const { reject } of this.#pending.values()) reject(new OvsdbError('', reason))
    this.#pending.clear()
    this.#env.onClose(reason)
  }

  #send(message: unknown): void {
    this.#socket.write(JSON.stringify(message))
    // Also bounds the echoes to a server that sends requests and reads nothing.
    if (this.#socket.writableLength > MESSAGE_OCTETS_MAX) this.close('the server reads too slowly')
  }

  #receive(chunk: Uint8Array): void {
    if (this.#isClosed) return
    this.#heardMs = this.#env.clock.monotonic()
    const fault = this.#splitter.push(chunk, (text) => this.#take(text))
    if (fault !== '') this.close(fault)
  }

  #take(text: string): void {
    if (this.#isClosed) return
    let message: unknown
    try {
      message = JSON.parse(text)
    } catch {
      this.close('received invalid JSON')
      return
    }
    if (!isRecord(message)) return
    const { method, params, id } = message
    if (typeof method !== 'string') this.#takeReply(message)
    else if (id === null) this.#env.onNotification(method, Array.isArray(params) ? params : [])
    else if (method === 'echo') this.#send({ result: params, error: null, id })
    else this.#send({ result: null, error: 'unknown method', id })
  }

  #takeReply({ id, result, error }: Readonly<Record<string, unknown>>): void {
    const request = typeof id === 'number' ? this.#pending.get(id) : undefined
    if (request === undefined) return
    this.#pending.delete(Number(id))
    if (error === null || error === undefined) request.take(result)
    else request.reject(errorOf(error))
  }

  #check(): void {
    const nowMs = this.#env.clock.monotonic()
    const [oldest] = this.#pending.values()
    const silentMs = nowMs - this.#heardMs
    const waitedMs = oldest === undefined ? silentMs : Math.max(silentMs, nowMs - oldest.sentMs)
    if (waitedMs >= TIMEOUT_MS) {
      this.close(`the server did not reply in ${TIMEOUT_MS / 1000} s`)
    } else if (silentMs >= PROBE_MS && !this.#isProbing) {
      this.#isProbing = true
      const end = (): void => {
        this.#isProbing = false
      }
      this.request('echo', [], end).catch(end)
    }
  }
}

/** The error of a reply, or of one operation of a transaction. */
export function errorOf(error: unknown): OvsdbError {
  if (!isRecord(error)) return new OvsdbError('error', JSON.stringify(error))
  const code = typeof error.error === 'string' ? error.error : 'error'
  const details = typeof error.details === 'string' ? `: ${error.details}` : ''
  return new OvsdbError(code, code + details)
}
