import type { Socket } from 'node:net'
import { reasonOf } from '../../base/system-error.ts'
import type { Timers } from '../../base/timers.ts'
import { ControlKind, ControlReader, composeControl } from './control-frame.ts'

/** Longest time until the sink accepts, and until it has read everything at the end. */
const HANDSHAKE_MS = 4000
const FINISH_MS = 1000

interface ConnectionHooks {
  /** The sink accepts messages. */
  readonly onOpen: () => void
  /** Called once, also if the connection was never open. */
  readonly onEnd: (reason: string) => void
}

/** A connection before the handshake. */
export interface OpenedSocket {
  readonly socket: Socket
  /** The event after which it can be used; '' = now. */
  readonly event: string
}

/**
 * A connection to a sink (Frame Streams, bidirectional), which either side has opened:
 *
 *     READY ─▶   ◀─ ACCEPT   START ─▶   data ─▶ …   STOP ─▶   ◀─ FINISH
 */
export class SinkConnection {
  readonly #socket: Socket
  readonly #hooks: ConnectionHooks
  readonly #timers: Timers
  readonly #reader = new ControlReader()
  #cancel: () => void
  #isOpen = false
  #isOver = false

  constructor({ socket, event }: OpenedSocket, timers: Timers, hooks: ConnectionHooks) {
    this.#hooks = hooks
    this.#timers = timers
    // The server must not wait for a sink when it ends.
    socket.unref()
    const begin = (): void => void socket.write(composeControl(ControlKind.Ready))
    if (event === '') begin()
    else socket.on(event, begin)
    socket.on('data', (octets) => this.#receive(octets))
    socket.on('error', (error) => this.#end(reasonOf(error)))
    socket.on('close', () => this.#end('the sink closed the connection'))
    this.#socket = socket
    this.#cancel = timers.after(HANDSHAKE_MS, () => {
      this.#end(`the sink did not accept in ${HANDSHAKE_MS / 1000} s`)
    })
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Octets that wait for the sink. */
  get waitingOctets(): number {
    return this.#socket.writableLength
  }

  /** `done` gets whether the system accepted the octets. */
  write(octets: Uint8Array, done: (isSent: boolean) => void): void {
    this.#socket.write(octets, (error) => done(error === undefined || error === null))
  }

  /** Ends the stream. The end follows once the sink has read everything, or after a second. */
  finish(): void {
    if (!this.#isOpen) {
      this.#end('stopped')
      return
    }
    this.#isOpen = false
    this.#socket.ref()
    this.#socket.write(composeControl(ControlKind.Stop))
    this.#cancel = this.#timers.after(FINISH_MS, () => this.#end('the sink did not finish'))
  }

  #receive(octets: Uint8Array): void {
    try {
      for (const kind of this.#reader.read(octets)) this.#take(kind)
    } catch (error) {
      this.#end(reasonOf(error))
    }
  }

  #take(kind: number): void {
    if (kind === ControlKind.Finish) this.#end('the sink finished')
    if (kind !== ControlKind.Accept || this.#isOpen || this.#isOver) return
    this.#cancel()
    this.#socket.write(composeControl(ControlKind.Start))
    this.#isOpen = true
    this.#hooks.onOpen()
  }

  #end(reason: string): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#isOpen = false
    this.#cancel()
    this.#socket.destroy()
    this.#hooks.onEnd(reason)
  }
}
