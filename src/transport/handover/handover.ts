import { Socket } from 'node:net'
import { constants } from 'node:os'
import type { Libc } from '../udp/batch/libc.ts'
import { DescriptorSocket } from './descriptor-socket.ts'

/** The state of a connection that the next process needs. */
export interface HandedState {
  /** Number of queries that it has sent. */
  readonly queries: number
  /** A PROXY header with its client; no octets = the peer itself sends the queries. */
  readonly header: Uint8Array
  /** Octets that were read and not served: usually none, or a part of a message. */
  readonly pending: Uint8Array
}

/** Accepts a connection of the predecessor. */
export type Adopt = (socket: Socket, state: HandedState) => void

/**
 * `busy`: the connection has queries in flight or unsent replies; `full`: the other process has not yet received the
 * last connections; `never`: this connection can't be handed over; `gone`: the other process has ended.
 */
export type HandedOver = 'done' | 'busy' | 'full' | 'never' | 'gone'

/** Intervals at which the channel is read: before the predecessor begins to hand over, and after that. */
const WAIT_MS = 25
const RECEIVE_MS = 1
/** Most messages that are read before the event loop continues. */
const RECEIVE_MAX = 64

/** Kinds of message: the first octet. A process ignores kinds that it does not know. */
const NAME = 1
const CONNECTION = 2
const PROXIED_CONNECTION = 3
/** Of a connection: kind 0, queries 1..4, then the pending octets. */
const HEAD_OCTETS = 5
/** Of a proxied connection: the same, then the octets of its header 5..6, the header and the pending octets. */
const PROXIED_HEAD_OCTETS = 7
/** A message of 65 537 octets and two reads of Node.js, of 65 536 octets each, are shorter. */
const MESSAGE_OCTETS_MAX = 1 << 18

const { EMSGSIZE, EPIPE, ECONNRESET, ENOTCONN } = constants.errno

type Warn = (message: string) => void

/** Any local user can connect to an abstract name, so also fill its queue, or take it first. */
function lossOf(address: string): string {
  const cause = 'its socket for the hand-over is full, or has another user'
  const fix = 'see `ss -xp` for sextant/tcp, and end the processes of other users that have it'
  return `TCP connections of ${address} are not handed over, the old process will end them: ${cause}; ${fix}`
}

/**
 * Moves the open connections of a TCP address from the process that ends to the process that takes over. The
 * connections stay open, so no query can be lost. (A FIN would lose a query that crosses it.)
 *
 *     old process                                   new process (-takeover)
 *     listens on the name       ◀── connects ─────  finds the name in use
 *     SIGTERM: NAME             ────────────────▶   listens on the name
 *              CONNECTION, …    ────────────────▶   adopts the connection
 *              ends             ── end ─────────▶   closes the channel
 *
 * The name is that of an abstract UNIX socket, which belongs to a network namespace, as the address does. Each side
 * requires that the other has the same user, as SO_REUSEPORT does. The name moves as a descriptor too, so a third
 * process always finds it in use.
 */
export class Handover {
  readonly #libc: Libc
  readonly #name: string
  readonly #adopt: Adopt
  /** Undefined: another process has the name, or the system allows no such socket. */
  #listener: DescriptorSocket | undefined
  #predecessor: DescriptorSocket | undefined
  #successor: DescriptorSocket | undefined
  #timer: NodeJS.Timeout | undefined

  /** `takesOver`: another process may have the address. */
  constructor(libc: Libc, address: string, takesOver: boolean, adopt: Adopt, warn: Warn) {
    this.#libc = libc
    this.#name = `sextant/tcp/${address}`
    this.#adopt = adopt
    this.#listener = DescriptorSocket.listen(libc, this.#name)
    if (this.#listener !== undefined || !takesOver) return
    this.#predecessor = DescriptorSocket.connect(libc, this.#name)
    if (this.#predecessor !== undefined) this.#poll(WAIT_MS)
    else warn(lossOf(address))
  }

  /** Returns true if another process takes over: `send` works from now on. */
  begin(): boolean {
    // Closing the channel would reset the connections that are still in it.
    while (this.#receive());
    this.#endPredecessor()
    const listener = this.#listener
    // The last one that has not ended since it connected.
    for (const socket of listener?.accept().reverse() ?? []) {
      if (this.#successor === undefined && socket.send(Uint8Array.of(NAME), listener!.fd)) {
        this.#successor = socket
      } else socket.close()
    }
    return this.#successor !== undefined
  }

  /** Sends a copy of the descriptor. If the result is `done`, the caller closes its own. */
  send(fd: number, state: HandedState): HandedOver {
    if (this.#successor === undefined) return 'gone'
    const message = composeConnection(state)
    if (this.#successor.send(message, fd)) return 'done'
    const errno = this.#libc.errno()
    if (errno === EMSGSIZE) return 'never'
    return errno === EPIPE || errno === ECONNRESET || errno === ENOTCONN ? 'gone' : 'full'
  }

  close(): void {
    this.#endPredecessor()
    this.#listener?.close()
    this.#listener = undefined
    this.#successor?.close()
    this.#successor = undefined
  }

  #poll(ms: number): void {
    this.#timer = setTimeout(() => {
      let received = 0
      while (received < RECEIVE_MAX && this.#receive()) received++
      if (this.#predecessor !== undefined) this.#poll(received > 0 ? RECEIVE_MS : ms)
    }, ms)
    this.#timer.unref()
  }

  /** Handles one message of the predecessor; false if none waits. */
  #receive(): boolean {
    const received = this.#predecessor?.receive(MESSAGE_OCTETS_MAX) ?? 'none'
    if (received === 'none') return false
    if (received === 'end') {
      this.#endPredecessor()
      // If no NAME message came, the predecessor ended without handing over.
      this.#listener ??= DescriptorSocket.listen(this.#libc, this.#name)
      return false
    }
    const { octets, fd } = received
    if (fd === -1) return true
    const state = parseConnection(octets)
    if (state !== undefined) this.#open(state, fd)
    else if (octets[0] === NAME && this.#listener === undefined) {
      this.#listener = new DescriptorSocket(this.#libc, fd)
    } else this.#libc.close(fd)
    return true
  }

  #open(state: HandedState, fd: number): void {
    let socket: Socket
    try {
      socket = new Socket({ fd, allowHalfOpen: true, readable: true, writable: true })
    } catch {
      this.#libc.close(fd)
      return
    }
    this.#adopt(socket, state)
  }

  #endPredecessor(): void {
    clearTimeout(this.#timer)
    this.#predecessor?.close()
    this.#predecessor = undefined
  }
}

function composeConnection({ queries, header, pending }: HandedState): Uint8Array {
  const headOctets = header.length === 0 ? HEAD_OCTETS : PROXIED_HEAD_OCTETS
  const message = new Uint8Array(headOctets + header.length + pending.length)
  const view = new DataView(message.buffer)
  message[0] = header.length === 0 ? CONNECTION : PROXIED_CONNECTION
  view.setUint32(1, queries)
  if (header.length > 0) view.setUint16(HEAD_OCTETS, header.length)
  message.set(header, headOctets)
  message.set(pending, headOctets + header.length)
  return message
}

/** Undefined for messages of other kinds. */
function parseConnection(octets: Uint8Array): HandedState | undefined {
  const view = new DataView(octets.buffer, octets.byteOffset)
  if (octets[0] === CONNECTION && octets.length >= HEAD_OCTETS) {
    const header = new Uint8Array(0)
    return { queries: view.getUint32(1), header, pending: octets.subarray(HEAD_OCTETS) }
  }
  if (octets[0] !== PROXIED_CONNECTION || octets.length < PROXIED_HEAD_OCTETS) return undefined
  const end = PROXIED_HEAD_OCTETS + view.getUint16(HEAD_OCTETS)
  return {
    queries: view.getUint32(1),
    header: octets.subarray(PROXIED_HEAD_OCTETS, end),
    pending: octets.subarray(end),
  }
}

/** The descriptor of a connection, which Node.js does not document; undefined once it is closed. */
export function descriptorOf(socket: Socket): number | undefined {
  const { _handle: handle } = socket as { _handle?: { readonly fd?: number } | null }
  const fd = handle?.fd
  return fd === undefined || fd < 0 ? undefined : fd
}
