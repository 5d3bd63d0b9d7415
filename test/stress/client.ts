import { Query } from '../../src/dns/message/query.ts'
import { writeSockaddr } from '../../src/transport/sockaddr.ts'
import { UNIT_PACKET } from '../../src/transport/udp/batch/layout.ts'
import { loadLibc } from '../../src/transport/udp/batch/libc.ts'
import { BatchSocket } from '../../src/transport/udp/batch/socket.ts'
import { composeQuery } from '../support/client.ts'
import { type Reply, readReply } from '../support/read-reply.ts'
import { isAbsent, isSteered, nameOf, PLACES, placesNamed, readAnswer } from './content.ts'

/** What writer and client share: all on SharedArrayBuffers. */
export interface Board {
  /** By name: the newest version that may have been published. */
  readonly begun: Int32Array
  /** By `Sign`. */
  readonly signs: Int32Array
}

export const Sign = {
  /** 1 = nothing changes any more. */
  Done: 0,
} as const

export interface Report {
  asked: number
  answered: number
  /** Asked and not answered within `LOST_MS`. */
  lost: number
  faults: number
  /** The first few. */
  readonly samples: string[]
  /** Answers of another version than the last one for that name on that socket. */
  changes: number
}

const WINDOW = 16
const LOST_MS = 10_000
const SAMPLES_MAX = 10

interface Asked {
  readonly n: number
  readonly place: number
  readonly sentMs: number
  /** What this socket had seen of the name, and which serial, when it asked. */
  readonly seen: number
  readonly serial: number
}

/** One socket, served by one thread: on it no name may ever go back. */
class Peer {
  readonly socket: BatchSocket
  readonly unit: number
  readonly pending = new Map<number, Asked>()
  /** By name: the version seen last, or the earliest that it can have been. */
  readonly seen: Int32Array
  serial = 0
  id = 0

  constructor(port: number, names: number) {
    this.socket = new BatchSocket(loadLibc(), { host: '127.0.0.1', port: 0 })
    const copy = new Uint8Array(UNIT_PACKET + 12)
    writeSockaddr(copy, 0, '127.0.0.1', port)
    this.unit = this.socket.takeUnit(copy, new Query())
    this.seen = new Int32Array(names)
  }
}

/** Asks for names at random, from places at random, and checks every answer. */
export class StressClient {
  readonly report: Report = {
    asked: 0,
    answered: 0,
    lost: 0,
    faults: 0,
    samples: [],
    changes: 0,
  }
  readonly #board: Board
  readonly #peers: readonly Peer[]
  /** Questions by name, for place 0 and with id 0. */
  readonly #questions: readonly Buffer[]
  readonly #query = new Query()
  #random = 1

  constructor(port: number, sockets: number, board: Board) {
    this.#board = board
    const names = board.begun.length
    this.#peers = Array.from({ length: sockets }, () => new Peer(port, names))
    this.#questions = Array.from({ length: names }, (_, n) =>
      composeQuery({ name: nameOf(n), type: 'A', subnet: '10.0.0.0/24' }, 0),
    )
  }

  /** Asks and checks; returns how many answers there were. */
  turn(): number {
    let answers = 0
    for (const peer of this.#peers) {
      answers += this.#receive(peer)
      while (peer.pending.size < WINDOW) this.#ask(peer, this.#below(this.#questions.length))
      peer.socket.flush()
    }
    return answers
  }

  /** Asks every socket for every name once more; returns how many are not in their last version. */
  sweep(): number {
    let behind = 0
    for (const peer of this.#peers) peer.pending.clear()
    for (let n = 0; n < this.#questions.length; n++) {
      for (const peer of this.#peers) {
        this.#ask(peer, n)
        peer.socket.flush()
      }
      const deadlineMs = performance.now() + LOST_MS
      while (this.#peers.some((peer) => peer.pending.size > 0)) {
        for (const peer of this.#peers) this.#receive(peer)
        if (performance.now() > deadlineMs) break
      }
      for (const { seen } of this.#peers) if (!this.#isLast(n, seen[n]!)) behind++
    }
    return behind
  }

  close(): void {
    for (const { socket } of this.#peers) socket.close()
  }

  /** Of a name that is absent it is known only since when that can be so. */
  #isLast(n: number, seen: number): boolean {
    const last = this.#board.begun[n]!
    return isAbsent(n, last) ? isAbsent(n, seen) : seen === last
  }

  #ask(peer: Peer, n: number): void {
    const place = this.#below(PLACES)
    const question = this.#questions[n]!
    peer.id = (peer.id + 1) & 0xffff
    question.writeUInt16BE(peer.id, 0)
    question[question.length - 1] = place
    peer.pending.set(peer.id, {
      n,
      place,
      sentMs: performance.now(),
      seen: peer.seen[n]!,
      serial: peer.serial,
    })
    peer.socket.reply(peer.unit, question, question.length)
    this.report.asked++
  }

  #receive(peer: Peer): number {
    const { socket } = peer
    let answers = 0
    for (let count = socket.receive(); count > 0; count = socket.receive()) {
      for (let slot = 0; slot < count; slot++) {
        socket.describe(slot, this.#query)
        const { packet, packetOctets } = this.#query
        this.#take(peer, Buffer.from(packet.buffer, packet.byteOffset, packetOctets))
        answers++
      }
    }
    if (answers === 0) this.#forget(peer)
    return answers
  }

  #forget(peer: Peer): void {
    const sinceMs = performance.now() - LOST_MS
    for (const [id, { sentMs }] of peer.pending) {
      if (sentMs > sinceMs) return
      peer.pending.delete(id)
      this.report.lost++
    }
  }

  #take(peer: Peer, packet: Buffer): void {
    const id = packet.readUInt16BE(0)
    const asked = peer.pending.get(id)
    // Too late, and counted as lost.
    if (asked === undefined) return
    peer.pending.delete(id)
    this.report.answered++
    const question = this.#questions[asked.n]!
    const reply = readReply(packet, question)
    const fault =
      typeof reply === 'string'
        ? reply
        : reply.rcode === 3
          ? this.#checkAbsent(peer, asked, reply)
          : this.#checkPresent(peer, asked, reply)
    if (fault === '') return
    this.report.faults++
    const { n, place } = asked
    const seen = peer.seen[n]
    if (this.report.samples.length < SAMPLES_MAX) {
      const now = `seen ${seen}, begun ${this.#board.begun[n]}`
      this.report.samples.push(`${nameOf(n)} from place ${place}: ${fault} (${now})`)
    }
  }

  #checkPresent(peer: Peer, asked: Asked, { addresses }: Reply): string {
    const { n, place } = asked
    if (addresses.length === 0) return 'no addresses'
    const read = readAnswer(n, addresses)
    const { version } = read
    const fault = read.fault || this.#advance(peer, asked, version)
    if (fault !== '') return `${fault}: ${addresses.map((a) => a.join('.'))}`
    const named = placesNamed(n, version)
    const wanted = isSteeredTo(n, place, named) ? place : -1
    if (read.place === wanted) return ''
    return `version ${version} is for ${named}, the answer for ${read.place}`
  }

  #checkAbsent(peer: Peer, asked: Asked, { serial }: Reply): string {
    const { n } = asked
    if (serial < asked.serial) return `serial ${serial} after ${asked.serial}`
    peer.serial = Math.max(peer.serial, serial)
    const last = Atomics.load(this.#board.begun, n)
    let version = asked.seen
    while (version <= last && !isAbsent(n, version)) version++
    if (version > last) return 'it is said not to exist'
    return this.#advance(peer, asked, version)
  }

  /** Replies of one batch come in no order: only what was seen before it was asked is older for certain. */
  #advance(peer: Peer, { n, seen }: Asked, version: number): string {
    if (version > Atomics.load(this.#board.begun, n)) return `version ${version} is not published`
    if (version < seen) return `version ${version} after ${seen}`
    if (version <= peer.seen[n]!) return ''
    this.report.changes++
    peer.seen[n] = version
    return ''
  }

  #below(bound: number): number {
    this.#random = (Math.imul(this.#random, 0x41c64e6d) + 12345) >>> 0
    return (this.#random >>> 8) % bound
  }
}

function isSteeredTo(n: number, place: number, named: readonly number[]): boolean {
  return isSteered(n) && named.includes(place)
}
