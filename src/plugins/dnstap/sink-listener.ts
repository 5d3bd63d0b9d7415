import { lstatSync, renameSync, rmSync } from 'node:fs'
import { createServer, type ListenOptions, type Server, type Socket } from 'node:net'
import {
  createServer as createTlsServer,
  type TlsOptions,
  type Server as TlsServer,
} from 'node:tls'
import { Backoff } from '../../base/backoff.ts'
import type { Clock } from '../../base/clock.ts'
import { Random } from '../../base/random.ts'
import { isSystemError, reasonOf } from '../../base/system-error.ts'
import { LineBudget } from '../../base/telemetry/line-budget.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import type { SinkEndpoint } from './endpoint.ts'

/** Connections of an endpoint. Each has buffers. */
const SINKS_MAX = 8
const HANDSHAKE_MS = 4000

/** Lines about refused connections, which any client may cause. */
const LINES_MAX = 1
const LINES_PERIOD_MS = 10_000

interface ListenerParts {
  readonly log: Logger
  readonly clock: Clock
  readonly timers: Timers
  /** Seed of the waits between attempts. */
  readonly seed: number
}

/**
 * An endpoint that sinks connect to. Both instances of a reload share it: new connections belong to the last one.
 * If the address is in use, as during a take-over, it tries again.
 */
export class SinkListener {
  readonly #endpoint: SinkEndpoint
  readonly #name: string
  readonly #parts: ListenerParts
  readonly #backoff: Backoff
  readonly #refusals = new LineBudget(LINES_MAX, LINES_PERIOD_MS)
  #server: Server | undefined
  readonly #accepts: ((socket: Socket) => void)[] = []
  #tls: TlsOptions | undefined
  /** Inode of the socket's file; -1 = no file. */
  #inode = -1
  #cancelAttempt = (): void => {}
  #fault = ''
  #isClosed = false

  constructor(endpoint: SinkEndpoint, name: string, parts: ListenerParts) {
    this.#endpoint = endpoint
    this.#name = name
    this.#parts = parts
    this.#backoff = new Backoff(new Random(parts.seed))
  }

  /** `accept` gets each connection from now on. `tls`: for `tls://`. Returns the function that ends this. */
  attach(accept: (socket: Socket) => void, tls: TlsOptions | undefined): () => void {
    this.#accepts.push(accept)
    this.#tls = tls
    if (this.#server === undefined) this.#listen()
    else if (tls !== undefined) (this.#server as TlsServer).setSecureContext(tls)
    return () => void this.#accepts.splice(this.#accepts.indexOf(accept), 1)
  }

  close(): void {
    this.#isClosed = true
    this.#cancelAttempt()
    this.#server?.close()
    const { kind } = this.#endpoint
    // A later process may have replaced it.
    if (kind === 'unix' && inodeOf(this.#endpoint.path) === this.#inode) {
      rmSync(this.#endpoint.path, { force: true })
    }
  }

  #listen(): void {
    const accept = (socket: Socket): void => {
      const last = this.#accepts.at(-1)
      if (last === undefined) socket.destroy()
      else last(socket)
    }
    const server =
      this.#tls === undefined
        ? createServer({ noDelay: true, keepAlive: true }, accept)
        : createTlsServer({ ...this.#tls, handshakeTimeout: HANDSHAKE_MS }, accept)
    server.maxConnections = SINKS_MAX
    server.unref()
    server.on('drop', () => this.#warn(`more than ${SINKS_MAX} connections`))
    server.on('tlsClientError', (error) => this.#warn(reasonOf(error)))
    server.on('error', (error) => this.#retry(error))
    server.on('listening', () => this.#onListening())
    this.#server = server
    try {
      server.listen(this.#where())
    } catch (error) {
      this.#retry(error)
    }
  }

  /** A socket gets its name at the end: so it replaces the file of an earlier process. */
  #where(): ListenOptions {
    const endpoint = this.#endpoint
    if (endpoint.kind === 'unix') {
      const path = temporary(endpoint.path)
      rmSync(path, { force: true })
      return { path }
    }
    const { host, port } = endpoint
    return host === '' ? { port } : { host, port }
  }

  #onListening(): void {
    const endpoint = this.#endpoint
    if (endpoint.kind === 'unix') {
      const { path } = endpoint
      try {
        if (!isReplaceable(path)) throw new Error('the file exists and is not a socket')
        renameSync(temporary(path), path)
      } catch (error) {
        this.#server!.close()
        this.#retry(error)
        return
      }
      this.#inode = inodeOf(path)
    }
    this.#backoff.reset()
    this.#fault = ''
    this.#parts.log.info(`listening on ${this.#name}`, 'dnstap-listening')
  }

  #retry(error: unknown): void {
    if (this.#isClosed) return
    const reason = reasonOf(error)
    const { log, timers } = this.#parts
    if (reason !== this.#fault) {
      const name = this.#name
      log.warning(`cannot listen on ${name}, trying again: ${reason}`, 'dnstap-not-listening')
    }
    this.#fault = reason
    this.#cancelAttempt = timers.after(this.#backoff.next(), () => this.#listen())
  }

  #warn(reason: string): void {
    const { log, clock } = this.#parts
    if (!this.#refusals.take(clock.monotonic())) return
    log.warning(`${this.#name}: refused a sink: ${reason}`, 'dnstap-refused')
  }
}

function temporary(path: string): string {
  return `${path}.${process.pid}`
}

function isReplaceable(path: string): boolean {
  try {
    return lstatSync(path).isSocket()
  } catch (error) {
    if (isSystemError(error) && error.code === 'ENOENT') return true
    throw error
  }
}

/** -1 = no such file. */
function inodeOf(path: string): number {
  return lstatSync(path, { throwIfNoEntry: false })?.ino ?? -1
}
