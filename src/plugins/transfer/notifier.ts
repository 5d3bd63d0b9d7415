import { randomInt } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import { Opcode, printRcode, Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import { composeMessage } from '../../dns/message/compose-message.ts'
import { HeaderFlag } from '../../dns/message/header.ts'
import type { Message } from '../../dns/message/message.ts'
import { parseMessage } from '../../dns/message/parse-message.ts'
import { equalNames, nameKey, printName } from '../../dns/name/name.ts'
import type { TsigKey } from '../../dns/tsig/key.ts'
import { RequestSigner } from '../../dns/tsig/request-signer.ts'
import { VersionView, type ZoneVersion } from '../../xfr/journal/version-view.ts'
import type { NotifyTarget } from './rules.ts'

/** Most attempts at one serial. */
const TRIES_MAX = 6
/**
 * Wait for a reply to the first attempt, and the least time between two attempts. Each further wait is twice as
 * long.
 */
const FIRST_WAIT_MS = 1000
/** Most first attempts at the same time, so that their replies are not too many at once. The others are queued. */
const FIRST_ATTEMPTS_MAX = 64
/** A target that has not replied after this time leaves its place to the next one. */
const PLACE_MS = 100

const NO_REPLY = 'no reply'

interface NotifierParts {
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
  readonly onSent: () => void
  readonly onFailed: () => void
}

/** The target of a NOTIFY, with its source address and key. */
interface Addressee {
  readonly target: NotifyTarget
  /** Source address; '' = any. */
  readonly source: string
  /** Undefined = it is not signed. */
  readonly key: TsigKey | undefined
}

interface Job extends Addressee {
  version: ZoneVersion
  /** `version` is newer than what the last attempt sent. */
  isStale: boolean
  /** The last attempt is younger than FIRST_WAIT_MS: the next one must wait. */
  isPaused: boolean
  /** It is one of FIRST_ATTEMPTS_MAX. */
  hasPlace: boolean
  /** Attempts at this serial. */
  tries: number
  /** Attempts without a reply since the last reply or logged failure, over all serials. */
  unanswered: number
  id: number
  signer: RequestSigner | undefined
  cancel: () => void
}

/**
 * Sends NOTIFYs (RFC 1996) for new versions of zones. Each one is repeated with growing waits until
 * the target replies or TRIES_MAX is reached. A target has at most one outstanding NOTIFY per zone.
 * A new version starts the attempts anew, at most one per FIRST_WAIT_MS. Targets that do not reply
 * delay the others by PLACE_MS for each FIRST_ATTEMPTS_MAX of them.
 */
export class Notifier {
  readonly #parts: NotifierParts
  /** NOTIFYs that wait for a reply, by zone and target. */
  readonly #active = new Map<string, Job>()
  readonly #waiting = new Map<string, Job>()
  /** Jobs that have a place. */
  #places = 0
  /** By source address and family. */
  readonly #sockets = new Map<string, Socket>()
  /** Zones and targets with a logged failure that has not ended. */
  readonly #failing = new Set<string>()
  #isClosed = false

  constructor(parts: NotifierParts) {
    this.#parts = parts
  }

  notify(version: ZoneVersion, addressee: Addressee): void {
    if (this.#isClosed) return
    const key = jobKey(version.zone, addressee.target)
    const active = this.#active.get(key)
    if (active !== undefined) {
      active.version = version
      active.isStale = true
      if (!active.isPaused) this.#restart(key, active)
      return
    }
    const unanswered = this.#waiting.get(key)?.unanswered ?? 0
    this.#enqueue(key, { ...addressee, version, unanswered })
  }

  #enqueue(key: string, job: Addressee & Pick<Job, 'version' | 'unanswered'>): void {
    const idle = { isStale: false, isPaused: false, hasPlace: false, tries: 0, id: 0 }
    this.#waiting.set(key, { ...job, ...idle, signer: undefined, cancel: () => {} })
    this.#startWaiting()
  }

  /** Starts the attempts anew for a newer serial. */
  #restart(key: string, job: Job): void {
    this.#stop(key, job)
    if (job.unanswered >= TRIES_MAX) this.#noteFailure(key, job, NO_REPLY)
    this.#enqueue(key, job)
  }

  close(): void {
    this.#isClosed = true
    for (const job of this.#active.values()) job.cancel()
    this.#active.clear()
    this.#waiting.clear()
    for (const socket of this.#sockets.values()) socket.close()
    this.#sockets.clear()
  }

  #startWaiting(): void {
    for (const [key, job] of this.#waiting) {
      if (this.#places >= FIRST_ATTEMPTS_MAX) return
      this.#waiting.delete(key)
      this.#active.set(key, job)
      job.hasPlace = true
      this.#places++
      this.#try(key, job)
    }
  }

  #leavePlace(job: Job): void {
    if (job.hasPlace) this.#places--
    job.hasPlace = false
  }

  #stop(key: string, job: Job): void {
    job.cancel()
    this.#leavePlace(job)
    this.#active.delete(key)
  }

  #try(key: string, job: Job): void {
    job.id = randomInt(0x10000)
    job.isStale = false
    job.isPaused = true
    job.tries++
    job.unanswered++
    this.#send(job)
    if (!job.hasPlace) this.#pause(key, job, FIRST_WAIT_MS)
    else {
      job.cancel = this.#parts.timers.after(PLACE_MS, () => {
        this.#leavePlace(job)
        this.#pause(key, job, FIRST_WAIT_MS - PLACE_MS)
        this.#startWaiting()
      })
    }
  }

  #pause(key: string, job: Job, ms: number): void {
    const restMs = FIRST_WAIT_MS * (2 ** (job.tries - 1) - 1)
    job.cancel = this.#parts.timers.after(ms, () => {
      job.isPaused = false
      if (job.isStale) this.#restart(key, job)
      else if (restMs === 0) this.#tryAgain(key, job)
      else job.cancel = this.#parts.timers.after(restMs, () => this.#tryAgain(key, job))
    })
  }

  #tryAgain(key: string, job: Job): void {
    if (job.tries < TRIES_MAX) this.#try(key, job)
    else this.#end(key, job, NO_REPLY)
  }

  #send(job: Job): void {
    const message = composeNotify(job.version, job.id)
    if (message === undefined) return
    const { key, target } = job
    const seconds = Math.floor(this.#parts.clock.now() / 1000)
    job.signer = key === undefined ? undefined : new RequestSigner(key)
    const packet = job.signer === undefined ? message : job.signer.sign(message, seconds)
    this.#parts.onSent()
    // A packet that can't be sent counts as lost: it is sent again later.
    this.#socketFor(job).send(packet, target.port, target.host, () => {})
  }

  #socketFor({ target, source }: Job): Socket {
    const isV6 = isIPv6(target.host)
    const name = `${isV6} ${source}`
    const known = this.#sockets.get(name)
    if (known !== undefined) return known
    const socket = createSocket(isV6 ? 'udp6' : 'udp4')
    socket.on('error', (error) => {
      this.#parts.log.error(`NOTIFY from ${source}: ${error.message}`, 'notify-socket-failed')
      // The address may exist later: the next attempt opens another socket.
      if (this.#sockets.get(name) !== socket) return
      this.#sockets.delete(name)
      socket.close()
    })
    socket.on('message', (packet, { address, port }) => this.#receive(packet, address, port))
    if (source === '') socket.bind()
    else socket.bind(0, source)
    socket.unref()
    this.#sockets.set(name, socket)
    return socket
  }

  #receive(packet: Uint8Array, address: string, port: number): void {
    const message = parseMessage(packet)
    if (message?.question === undefined || message.opcode !== Opcode.NOTIFY) return
    if ((message.flags & HeaderFlag.QR) === 0) return
    const key = jobKey(message.question.name, { host: address, port })
    const job = this.#active.get(key)
    if (job === undefined || job.id !== message.id) return
    if (!equalNames(message.question.name, job.version.zone)) return
    const fault = this.#faultOf(job, message, packet)
    if (fault === undefined) return
    this.#end(key, job, fault)
  }

  /**
   * Returns what is wrong with a reply, '' = nothing; undefined = it may come from another sender.
   */
  #faultOf({ signer }: Job, message: Message, packet: Uint8Array): string | undefined {
    const seconds = Math.floor(this.#parts.clock.now() / 1000)
    const fault = signer?.verify(packet, seconds) ?? ''
    // A server that lacks the key answers NOTAUTH unsigned (RFC 8945 section 5.3).
    if (fault !== '' && message.rcode !== Rcode.NOTAUTH) return undefined
    return message.rcode === Rcode.NOERROR ? '' : `the reply is ${printRcode(message.rcode)}`
  }

  #end(key: string, job: Job, fault: string): void {
    this.#stop(key, job)
    if (fault !== '') this.#noteFailure(key, job, fault)
    else if (this.#failing.delete(key))
      this.#parts.log.info(`${describe(job)} is answered again`, 'notify-answered')
    if (job.isStale && !this.#isClosed) this.notify(job.version, job)
    this.#startWaiting()
  }

  #noteFailure(key: string, job: Job, fault: string): void {
    job.unanswered = 0
    this.#parts.onFailed()
    if (!this.#failing.has(key))
      this.#parts.log.warning(`${describe(job)} failed: ${fault}`, 'notify-failed')
    this.#failing.add(key)
  }
}

function describe({ version, target }: Job): string {
  return `NOTIFY of ${printName(version.zone)} ${version.serial} to ${target.host}:${target.port}`
}

function jobKey(zone: Uint8Array, { host, port }: NotifyTarget): string {
  return `${host} ${port} ${nameKey(zone)}`
}

function composeNotify(version: ZoneVersion, id: number): Uint8Array | undefined {
  const soa = VersionView.open(version)?.soa()
  if (soa === undefined) return undefined
  const { owner, type, ttlSeconds, rdata, rdataOffset, rdataOctets } = soa
  const record = {
    owner,
    type,
    rrclass: RRClass.IN,
    ttlSeconds,
    rdata: rdata.slice(rdataOffset, rdataOffset + rdataOctets),
  }
  return composeMessage({
    id,
    opcode: Opcode.NOTIFY,
    flags: HeaderFlag.AA,
    rcode: 0,
    question: { name: version.zone, type: RRType.SOA, rrclass: RRClass.IN },
    answer: [record],
    authority: [],
    additional: [],
    edns: undefined,
  })
}
