import { connect } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import type { Clock } from '../../base/clock.ts'
import type { Timers } from '../../base/timers.ts'
import { type HostPort, printHostPort } from '../../dns/host-port.ts'
import { Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import { HeaderFlag } from '../../dns/message/header.ts'
import { PAYLOAD_OCTETS } from '../ask.ts'
import { type OpenStream, StreamConnections, type StreamLimits } from './stream-connections.ts'
import { UdpSockets, UNDER_ATTACK } from './udp-sockets.ts'
import type { Cancellation, Outcome, UpstreamQuestion } from './upstream-query.ts'

/** Certificates for DNS over TLS (RFC 7858), and the name that the server must prove. */
export interface TlsSettings {
  /** '' = the server must prove its address. */
  readonly serverName: string
  /** PEM; undefined = the certificate authorities of the system. */
  readonly ca: Buffer | undefined
  /** PEM of the client's own certificate and key; undefined = none. */
  readonly cert: Buffer | undefined
  readonly key: Buffer | undefined
}

interface HealthCheckSettings {
  readonly intervalMs: number
  readonly recursionDesired: boolean
  /** Lower-case wire form of the name whose NS records are requested. */
  readonly name: Uint8Array
  /** Failed checks that a server may have and still be up; 0 = it is always up and never checked. */
  readonly failsMax: number
}

export interface UpstreamSettings {
  readonly server: HostPort
  /** Address to send from, of the server's family; '' = the system chooses. */
  readonly source: string
  /** Undefined = UDP and TCP. */
  readonly tls: TlsSettings | undefined
  readonly limits: StreamLimits
  readonly health: HealthCheckSettings
  /** True: checks use TCP. */
  readonly forceTcp: boolean
}

/** Health checks of all names count as one question. */
const CHECK_HASH = 0
/** Longest wait for the reply to a health check. */
const CHECK_TIMEOUT_MS = 1000

/** A server that answers the queries of others. */
export class Upstream {
  /** `192.0.2.1:53` */
  readonly address: string
  readonly isTls: boolean
  readonly udp: UdpSockets
  /** TCP, or TLS if `isTls`. */
  readonly streams: StreamConnections
  /** Health checks without a reply since the last one with a reply. */
  fails = 0
  /** All health checks without a reply. */
  failedChecks = 0
  readonly #clock: Clock
  readonly #timers: Timers
  readonly #health: HealthCheckSettings
  readonly #forceTcp: boolean
  #isChecking = false
  #isClosed = false
  #stopCheck: (() => void) | undefined

  constructor(settings: UpstreamSettings, clock: Clock, timers: Timers) {
    const { server, source, tls, limits, health, forceTcp } = settings
    this.address = printHostPort(server)
    this.isTls = tls !== undefined
    this.#clock = clock
    this.#timers = timers
    this.#health = health
    this.#forceTcp = forceTcp
    this.udp = new UdpSockets({ server, source, clock, timers, expireMs: limits.expireMs })
    const ends = source === '' ? server : { ...server, localAddress: source }
    const open = tls === undefined ? openTcp(ends) : openTls(ends, tls)
    this.streams = new StreamConnections(open, clock, timers, limits)
  }

  get isDown(): boolean {
    const { failsMax } = this.#health
    return failsMax > 0 && this.fails > failsMax
  }

  /**
   * Asks the server. A truncated or too long reply over UDP is requested again over TCP, and so is
   * one that a forger tries to guess. A server that rejects EDNS is asked again without it (RFC 6891
   * section 6.2.2). Never rejects.
   */
  async ask(
    question: UpstreamQuestion,
    overTcp: boolean,
    timeoutMs: number,
    cancellation?: Cancellation,
  ): Promise<Outcome> {
    const deadlineMs = this.#clock.monotonic() + timeoutMs
    const outcome = await this.#exchange(question, overTcp, deadlineMs, cancellation)
    if ('failure' in outcome || !question.hasEdns || !rejectsEdns(outcome.message)) return outcome
    return this.#exchange({ ...question, hasEdns: false }, overTcp, deadlineMs, cancellation)
  }

  /** Checks the server now and then at intervals, until it replies. */
  check(): void {
    if (this.#isChecking || this.#isClosed || this.#health.failsMax === 0) return
    this.#isChecking = true
    void this.#runCheck()
  }

  /** Ends the checks. Queries in flight still get their replies. */
  close(): void {
    this.#isClosed = true
    this.#stopCheck?.()
    this.udp.close()
    this.streams.close()
  }

  async #exchange(
    question: UpstreamQuestion,
    overTcp: boolean,
    deadlineMs: number,
    cancellation: Cancellation | undefined,
  ): Promise<Outcome> {
    if (!overTcp && !this.isTls) {
      const outcome = await this.udp.ask(question, this.#left(deadlineMs), cancellation)
      const isAttacked = 'failure' in outcome && outcome.failure === UNDER_ATTACK
      if (!isAttacked && !needsStream(outcome)) return outcome
    }
    return this.streams.ask(question, this.#left(deadlineMs), cancellation)
  }

  #left(deadlineMs: number): number {
    return Math.max(0, deadlineMs - this.#clock.monotonic())
  }

  async #runCheck(): Promise<void> {
    const { name, recursionDesired, intervalMs } = this.#health
    const question = {
      name,
      type: RRType.NS,
      rrclass: RRClass.IN,
      hash: CHECK_HASH,
      flags: recursionDesired ? HeaderFlag.RD : 0,
      dnssecOk: false,
      subnet: undefined,
      mixesCase: false,
      hasEdns: false,
    }
    const transport = this.isTls || this.#forceTcp ? this.streams : this.udp
    const outcome = await transport.ask(question, CHECK_TIMEOUT_MS)
    if (!('failure' in outcome)) {
      this.fails = 0
      this.#isChecking = false
      return
    }
    this.fails++
    this.failedChecks++
    if (this.#isClosed) return
    this.#stopCheck = this.#timers.after(intervalMs, () => void this.#runCheck())
  }
}

function rejectsEdns(message: { readonly rcode: number; readonly edns: unknown }): boolean {
  const { rcode, edns } = message
  return edns === undefined && (rcode === Rcode.FORMERR || rcode === Rcode.NOTIMP)
}

/** The two ends of a connection. */
interface Ends extends HostPort {
  /** Undefined = the system chooses. */
  readonly localAddress?: string
}

function openTcp(ends: Ends): OpenStream {
  return (ready) => {
    const socket = connect(ends)
    socket.once('connect', ready)
    return socket
  }
}

function openTls(ends: Ends, { serverName, ca, cert, key }: TlsSettings): OpenStream {
  let session: Buffer | undefined
  const options: ConnectionOptions = {
    ...ends,
    ...(serverName === '' ? {} : { servername: serverName }),
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert, key }),
  }
  return (ready) => {
    const socket = connectTls(session === undefined ? options : { ...options, session })
    // Not `connect`: the server's certificate is verified before `secureConnect`.
    socket.once('secureConnect', ready)
    socket.on('session', (ticket) => {
      session = ticket
    })
    return socket
  }
}

/** True if a reply over UDP is not whole. */
function needsStream(outcome: Outcome): boolean {
  if ('failure' in outcome) return false
  const isCut = (outcome.message.flags & HeaderFlag.TC) !== 0
  return isCut || outcome.octets > PAYLOAD_OCTETS
}
