import { randomInt } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import type { Clock } from '../../base/clock.ts'
import type { Timers } from '../../base/timers.ts'
import type { HostPort } from '../../dns/host-port.ts'
import {
  composeQuery,
  isReplyTo,
  type Outcome,
  readReply,
  socketFailure,
  TIMED_OUT,
  type UpstreamQuery,
  type UpstreamQuestion,
} from './upstream-query.ts'

/** Queries of one socket, so of one source port. */
const USES_MAX = 64
/**
 * A kept socket is used again only if as many are idle. A forger can then not predict the source
 * port of the next query, even if it knows some of the ports.
 */
const IDLE_MIN = 16
/** Sockets kept while no query needs them. */
const IDLE_MAX = 256

/**
 * Packets that are not the reply, after which a query is given up: a forger guesses its id. 64 of 65536
 * ids are one chance in a thousand.
 */
const STRAYS_MAX = 64
export const UNDER_ATTACK = 'too many packets that are not the reply'

/** Counts of queries over kept and over new sockets or connections. */
export class ReuseCounts {
  hits = 0
  misses = 0
}

interface Waiting {
  readonly query: UpstreamQuery
  readonly finish: (outcome: Outcome) => void
}

/** A socket from a random port that receives only from the server. */
class UdpSocket {
  readonly openedMs: number
  uses = 0
  isOpen = true
  readonly #socket: Socket
  #isConnected = false
  #waiting: Waiting | undefined
  /** Packets that are not the reply, while the current query waits. */
  #strays = 0

  constructor({ host, port }: HostPort, openedMs: number) {
    this.openedMs = openedMs
    const family = isIPv6(host) ? 6 : 4
    const socket = createSocket({
      type: family === 6 ? 'udp6' : 'udp4',
      // The host is an address, so the lookup in another thread is unnecessary.
      lookup: (address, _, callback) => callback(null, address, family),
    })
    this.#socket = socket
    // A connected socket gets an error if no process listens on the server's port.
    socket.on('error', (error) => this.#fail(socketFailure(error)))
    socket.on('message', (octets) => this.#receive(octets))
    socket.once('connect', () => {
      this.#isConnected = true
      this.#send()
    })
    socket.connect(port, host)
  }

  /** Sends a query. Only one at a time. */
  ask(query: UpstreamQuery, finish: (outcome: Outcome) => void): void {
    this.uses++
    this.#strays = 0
    this.#waiting = { query, finish }
    if (this.#isConnected) this.#send()
  }

  /** Returns why the query has no reply, and stops waiting for it. */
  giveUp(): string {
    this.#waiting = undefined
    const strays = this.#strays
    return strays === 0 ? TIMED_OUT : `${TIMED_OUT}; ${strays} packets were not the reply`
  }

  close(): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.#socket.close()
  }

  #send(): void {
    if (this.#waiting === undefined) return
    this.#socket.send(this.#waiting.query.octets, (error) => {
      if (error !== null) this.#fail(socketFailure(error))
    })
  }

  #receive(octets: Uint8Array): void {
    const waiting = this.#waiting
    if (waiting === undefined) return
    if (isReplyTo(octets, waiting.query)) this.#finish(readReply(octets))
    else if (++this.#strays === STRAYS_MAX) this.#fail(UNDER_ATTACK)
  }

  #fail(failure: string): void {
    this.close()
    this.#finish({ failure })
  }

  #finish(outcome: Outcome): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.finish(outcome)
  }
}

/**
 * Sends queries to one server over UDP, each with a random id, from one of many random source ports
 * that change after a limited number of queries. A port carries one query at a time, and none after
 * a query that got no reply.
 */
export class UdpSockets {
  readonly counts = new ReuseCounts()
  readonly #server: HostPort
  readonly #clock: Clock
  readonly #timers: Timers
  readonly #expireMs: number
  readonly #idle: UdpSocket[] = []
  #isClosed = false
  #stopSweep: (() => void) | undefined

  /** `expireMs`: a socket is closed when it is that old, once it is idle. */
  constructor(server: HostPort, clock: Clock, timers: Timers, expireMs: number) {
    this.#server = server
    this.#clock = clock
    this.#timers = timers
    this.#expireMs = expireMs
  }

  /** Never rejects. */
  ask(question: UpstreamQuestion, timeoutMs: number): Promise<Outcome> {
    return new Promise((resolve) => {
      const socket = this.#take()
      const stopTimer = this.#timers.after(timeoutMs, () => {
        const failure = socket.giveUp()
        // The reply may still come, and a forged one too.
        socket.close()
        resolve({ failure })
      })
      socket.ask(composeQuery(question, notUsed), (outcome) => {
        stopTimer()
        this.#give(socket)
        resolve(outcome)
      })
    })
  }

  /** Closes the idle sockets now, and the others after their queries. */
  close(): void {
    this.#isClosed = true
    this.#stopSweep?.()
    for (const socket of this.#idle.splice(0)) socket.close()
  }

  #take(): UdpSocket {
    const idle = this.#idle
    while (idle.length >= IDLE_MIN) {
      const i = randomInt(idle.length)
      const socket = idle[i]!
      idle[i] = idle[idle.length - 1]!
      idle.pop()
      if (!this.#isUsable(socket)) {
        socket.close()
        continue
      }
      this.counts.hits++
      return socket
    }
    this.counts.misses++
    return new UdpSocket(this.#server, this.#clock.monotonic())
  }

  #isUsable(socket: UdpSocket): boolean {
    if (!socket.isOpen || socket.uses >= USES_MAX) return false
    return this.#clock.monotonic() - socket.openedMs < this.#expireMs
  }

  #give(socket: UdpSocket): void {
    if (this.#isClosed || this.#idle.length >= IDLE_MAX || !this.#isUsable(socket)) {
      socket.close()
      return
    }
    this.#idle.push(socket)
    this.#stopSweep ??= this.#timers.after(this.#expireMs, () => this.#sweep())
  }

  /** Closes idle sockets that are too old. */
  #sweep(): void {
    this.#stopSweep = undefined
    const idle = this.#idle.splice(0)
    for (const socket of idle) this.#give(socket)
  }
}

function notUsed(): boolean {
  return false
}
