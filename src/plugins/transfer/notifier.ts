import { randomInt } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import type { Clock } from '../../base/clock.ts'
import type { Timers } from '../../base/timers.ts'
import { Opcode, printRcode, Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import {
  composeMessage,
  HeaderFlag,
  type Message,
  parseMessage,
} from '../../dns/message/message.ts'
import { equalNames, nameKey, printName } from '../../dns/name/name.ts'
import type { TsigKey } from '../../dns/tsig/key.ts'
import { RequestSigner } from '../../dns/tsig/request-signer.ts'
import type { Logger } from '../../telemetry/log.ts'
import { VersionView, type ZoneVersion } from '../../zone/history/version-view.ts'
import type { NotifyTarget } from './rules.ts'

/** Tries of one NOTIFY, and how long the first reply is waited for; each further one twice as long. */
export const TRIES_MAX = 6
export const FIRST_WAIT_MS = 1000
/** NOTIFYs under way at a time; others wait for their turn. */
export const ACTIVE_MAX = 64

export interface NotifierParts {
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
  readonly onSent: () => void
  readonly onFailed: () => void
}

/** Whom to tell, as what. */
export interface Addressee {
  readonly target: NotifyTarget
  /** '' = any address of ours. */
  readonly source: string
  /** Undefined = it is not signed. */
  readonly key: TsigKey | undefined
}

interface Job extends Addressee {
  version: ZoneVersion
  /** A newer version came while this one was under way. */
  isStale: boolean
  tries: number
  id: number
  signer: RequestSigner | undefined
  cancel: () => void
}

/**
 * Tells other servers of new versions (RFC 1996): again and again, ever more slowly, until they answer. Of
 * one zone and server one NOTIFY is under way at a time; versions that come meanwhile are told together.
 */
export class Notifier {
  readonly #parts: NotifierParts
  /** By zone and target, under way. */
  readonly #active = new Map<string, Job>()
  readonly #waiting = new Map<string, Job>()
  /** By source address and family. */
  readonly #sockets = new Map<string, Socket>()
  /** Zones and targets whose failure was logged, and has not ended. */
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
      return
    }
    const idle = { isStale: false, tries: 0, id: 0, signer: undefined, cancel: () => {} }
    this.#waiting.set(key, { ...addressee, ...idle, version })
    this.#startWaiting()
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
      if (this.#active.size >= ACTIVE_MAX) return
      this.#waiting.delete(key)
      this.#active.set(key, job)
      this.#try(key, job)
    }
  }

  #try(key: string, job: Job): void {
    job.id = randomInt(0x10000)
    job.isStale = false
    job.tries++
    this.#send(job)
    const waitMs = FIRST_WAIT_MS * 2 ** (job.tries - 1)
    job.cancel = this.#parts.timers.after(waitMs, () => {
      if (job.tries < TRIES_MAX) this.#try(key, job)
      else this.#end(key, job, 'there was no answer')
    })
  }

  #send(job: Job): void {
    const message = composeNotify(job.version, job.id)
    if (message === undefined) return
    const { key, target } = job
    const seconds = Math.floor(this.#parts.clock.now() / 1000)
    job.signer = key === undefined ? undefined : new RequestSigner(key)
    const packet = job.signer === undefined ? message : job.signer.sign(message, seconds)
    this.#parts.onSent()
    // What can't be sent is as good as lost on the way: it is tried again.
    this.#socketFor(job).send(packet, target.port, target.host, () => {})
  }

  #socketFor({ target, source }: Job): Socket {
    const isV6 = isIPv6(target.host)
    const name = `${isV6} ${source}`
    const known = this.#sockets.get(name)
    if (known !== undefined) return known
    const socket = createSocket(isV6 ? 'udp6' : 'udp4')
    socket.on('error', (error) => this.#parts.log.error(`NOTIFY from ${source}: ${error.message}`))
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
    const fault = this.#judge(job, message, packet)
    if (fault === undefined) return
    job.cancel()
    this.#end(key, job, fault)
  }

  /** What is wrong with a reply, '' = nothing; undefined = it may be of somebody else. */
  #judge({ signer }: Job, message: Message, packet: Uint8Array): string | undefined {
    const seconds = Math.floor(this.#parts.clock.now() / 1000)
    const fault = signer?.verify(packet, seconds) ?? ''
    // Who can't sign, for want of the key, says so. RFC 8945 section 5.3.
    if (fault !== '' && message.rcode !== Rcode.NOTAUTH) return undefined
    return message.rcode === Rcode.NOERROR ? '' : `the answer is ${printRcode(message.rcode)}`
  }

  #end(key: string, job: Job, fault: string): void {
    this.#active.delete(key)
    const { log, onFailed } = this.#parts
    const { target, version } = job
    const what = `NOTIFY of ${printName(version.zone)} ${version.serial} to ${target.host}:${target.port}`
    if (fault === '') {
      if (this.#failing.delete(key)) log.info(`${what} arrived again`)
    } else {
      onFailed()
      if (!this.#failing.has(key)) log.warning(`${what} failed: ${fault}`)
      this.#failing.add(key)
    }
    if (job.isStale && !this.#isClosed) this.notify(version, job)
    this.#startWaiting()
  }
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
