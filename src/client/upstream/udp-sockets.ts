import { randomInt } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import type { Clock } from '../../base/clock.ts'
import type { Timers } from '../../base/timers.ts'
import type { HostPort } from '../../dns/host-port.ts'
import {
  CANCELLED,
  type Cancellation,
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
 * Packets that are not the reply, after which a question is given up: a forger guesses its id. They count for
 * all queries of one name, type and class together, because a reply to any of them can end in a cache.
 */
const STRAYS_MAX = 3
/** How long they count after the last query of the question. */
const STRAYS_MS = 10_000
export const UNDER_ATTACK = 'too many packets that are not the reply'

/** Counts of queries over kept and over new sockets or connections. */
export class ReuseCounts {
  hits = 0
  misses = 0
}

/** A name, type and class that is in flight. Those with the same hash count together. */
class AskedName {
  readonly hash: number
  /** Packets that were not the reply. */
  strays = 0
  /** The sockets of its queries; few, because equal questions are asked once. */
  readonly waiting: UdpSocket[] = []
  stopExpiry: (() => void) | undefined

  constructor(hash: number) {
    this.hash = hash
  }

  get isAttacked(): boolean {
    return this.strays >= STRAYS_MAX
  }

  remove(socket: UdpSocket): void {
    const at = this.waiting.indexOf(socket)
    if (at !== -1) this.waiting.splice(at, 1)
  }

  addStray(): void {
    this.strays++
    if (!this.isAttacked) return
    for (const socket of [...this.waiting]) socket.fail(UNDER_ATTACK)
  }
}

interface Waiting {
  readonly query: UpstreamQuery
  readonly asked: AskedName
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

  /** `source`: address to send from; '' = the system chooses. */
  constructor({ host, port }: HostPort, source: string, openedMs: number) {
    this.openedMs = openedMs
    const family = isIPv6(host) ? 6 : 4
    const socket = createSocket({
      type: family === 6 ? 'udp6' : 'udp4',
      // The host is an address, so the lookup in another thread is unnecessary.
      lookup: (address, _, callback) => callback(null, address, family),
    })
    this.#socket = socket
    // A connected socket gets an error if no process listens on the server's port.
    socket.on('error', (error) => this.fail(socketFailure(error)))
    socket.on('message', (octets) => this.#receive(octets))
    socket.once('connect', () => {
      this.#isConnected = true
      this.#send()
    })
    if (source !== '') socket.bind({ address: source, exclusive: true })
    socket.connect(port, host)
  }

  /** Sends a query. Only one at a time. */
  ask(query: UpstreamQuery, asked: AskedName, finish: (outcome: Outcome) => void): void {
    this.uses++
    this.#waiting = { query, asked, finish }
    asked.waiting.push(this)
    if (this.#isConnected) this.#send()
  }

  /** Returns why the query has no reply, and stops waiting for it. */
  giveUp(): string {
    const strays = this.#waiting?.asked.strays ?? 0
    this.#waiting?.asked.remove(this)
    this.#waiting = undefined
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
      if (error !== null) this.fail(socketFailure(error))
    })
  }

  #receive(octets: Uint8Array): void {
    const waiting = this.#waiting
    if (waiting === undefined) return
    if (isReplyTo(octets, waiting.query)) this.#finish(readReply(octets))
    else waiting.asked.addStray()
  }

  /** Ends the query, and the socket. */
  fail(failure: string): void {
    this.close()
    this.#finish({ failure })
  }

  #finish(outcome: Outcome): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.asked.remove(this)
    waiting?.finish(outcome)
  }
}

interface UdpSocketsParts {
  readonly server: HostPort
  /** Address to send from; '' = the system chooses. */
  readonly source: string
  readonly clock: Clock
  readonly timers: Timers
  /** A socket is closed when it is that old, once it is idle. */
  readonly expireMs: number
}

/**
 * Sends queries to one server over UDP, each with a random id, from one of many random source ports
 * that change after a limited number of queries. A port carries one query at a time, and none after
 * a query that got no reply.
 */
export class UdpSockets {
  readonly counts = new ReuseCounts()
  readonly #server: HostPort
  readonly #source: string
  readonly #clock: Clock
  readonly #timers: Timers
  readonly #expireMs: number
  readonly #idle: UdpSocket[] = []
  readonly #asked = new Map<number, AskedName>()
  #isClosed = false
  #stopSweep: (() => void) | undefined

  constructor({ server, source, clock, timers, expireMs }: UdpSocketsParts) {
    this.#server = server
    this.#source = source
    this.#clock = clock
    this.#timers = timers
    this.#expireMs = expireMs
  }

  /** Never rejects. Fails at once with UNDER_ATTACK while a forger guesses the ids of this question. */
  ask(
    question: UpstreamQuestion,
    timeoutMs: number,
    cancellation?: Cancellation,
  ): Promise<Outcome> {
    const asked = this.#askedName(question)
    if (asked.isAttacked) return Promise.resolve({ failure: UNDER_ATTACK })
    return new Promise((resolve) => {
      const socket = this.#take()
      const end = (outcome: Outcome): void => {
        cancellation?.set(undefined)
        this.#release(asked)
        resolve(outcome)
      }
      const giveUp = (): string => {
        const failure = socket.giveUp()
        // The reply may still come, and a forged one too.
        socket.close()
        return failure
      }
      const stopTimer = this.#timers.after(timeoutMs, () => end({ failure: giveUp() }))
      socket.ask(composeQuery(question, notUsed), asked, (outcome) => {
        stopTimer()
        this.#give(socket)
        end(outcome)
      })
      cancellation?.set(() => {
        stopTimer()
        giveUp()
        end({ failure: CANCELLED })
      })
    })
  }

  #askedName({ hash }: UpstreamQuestion): AskedName {
    let asked = this.#asked.get(hash)
    if (asked === undefined) this.#asked.set(hash, (asked = new AskedName(hash)))
    return asked
  }

  #release(asked: AskedName): void {
    if (asked.waiting.length > 0) return
    if (asked.strays === 0 || this.#isClosed) {
      this.#asked.delete(asked.hash)
      return
    }
    asked.stopExpiry ??= this.#timers.after(STRAYS_MS, () => {
      asked.stopExpiry = undefined
      if (asked.waiting.length === 0) this.#asked.delete(asked.hash)
    })
  }

  /** Closes the idle sockets now, and the others after their queries. */
  close(): void {
    this.#isClosed = true
    this.#stopSweep?.()
    for (const socket of this.#idle.splice(0)) socket.close()
    for (const asked of this.#asked.values()) asked.stopExpiry?.()
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
    return new UdpSocket(this.#server, this.#source, this.#clock.monotonic())
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
