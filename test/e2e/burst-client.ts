import { Query } from '../../src/dns/message/query.ts'
import { writeSockaddr } from '../../src/transport/sockaddr.ts'
import { UNIT_PACKET } from '../../src/transport/udp/batch/layout.ts'
import { loadLibc } from '../../src/transport/udp/batch/libc.ts'
import { BatchSocket } from '../../src/transport/udp/batch/socket.ts'

export interface BurstOptions {
  /** Where the server is, and what the client binds: of one family. */
  readonly server: string
  readonly local: string
  readonly port: number
  /** The kernel spreads clients over the server's sockets by their ports: more sockets, more even. */
  readonly sockets: number
  /** Queries of one socket that may wait for their answers. */
  readonly window: number
  /** Without its id, whose two octets are overwritten. */
  readonly query: Uint8Array
}

interface Member {
  readonly socket: BatchSocket
  readonly unit: number
  sent: number
  answered: number
}

/** Sends queries as fast as answers come back, in batches: some ten times what node:dgram manages. */
export class BurstClient {
  sent = 0
  answered = 0
  /** Answers with anything but NOERROR, or without one record in the answer section. */
  bad = 0
  /** `run` gave up waiting. */
  isStuck = false
  #total = 0
  readonly #options: BurstOptions
  readonly #members: Member[]
  readonly #query = new Query()
  readonly #bytes: Uint8Array

  constructor(options: BurstOptions) {
    this.#options = options
    this.#bytes = options.query.slice()
    const copy = new Uint8Array(UNIT_PACKET + 12)
    writeSockaddr(copy, 0, options.server, options.port)
    this.#members = Array.from({ length: options.sockets }, () => {
      const socket = new BatchSocket(loadLibc(), {
        host: options.local,
        port: 0,
        receiveBufferOctets: 1 << 20,
      })
      return { socket, unit: socket.takeUnit(copy, this.#query), sent: 0, answered: 0 }
    })
  }

  /** Takes the answers that are there and sends as many more queries, up to `total` altogether. */
  turn(total: number): void {
    for (const member of this.#members) {
      this.#receive(member)
      this.#send(member, total)
    }
  }

  /** Turns until `total` queries are answered, or no answer has come for `patienceMs`. */
  async run(total: number, patienceMs = 60_000): Promise<void> {
    let answered = -1
    let deadlineMs = 0
    this.#total = total
    while (this.answered < this.#total) {
      const nowMs = performance.now()
      this.isStuck = this.answered === answered && nowMs > deadlineMs
      if (this.isStuck) return
      if (this.answered !== answered) deadlineMs = nowMs + patienceMs
      answered = this.answered
      for (let turns = 0; turns < 8; turns++) this.turn(this.#total)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  /** Sends no more: `run` ends with the answers to what was sent. */
  finish(): void {
    this.#total = this.sent
  }

  close(): void {
    for (const { socket } of this.#members) socket.close()
  }

  #receive(member: Member): void {
    const { socket } = member
    for (let count = socket.receive(); count > 0; count = socket.receive()) {
      for (let slot = 0; slot < count; slot++) {
        socket.describe(slot, this.#query)
        const { packet } = this.#query
        const isGood = (packet[3]! & 0xf) === 0 && packet[6] === 0 && packet[7] === 1
        if (!isGood) this.bad++
        member.answered++
        this.answered++
      }
    }
  }

  #send(member: Member, total: number): void {
    const { socket, unit } = member
    const room = this.#options.window - (member.sent - member.answered)
    for (let i = 0; i < room && this.sent < total; i++) {
      this.#bytes[0] = member.sent >> 8
      this.#bytes[1] = member.sent
      socket.reply(unit, this.#bytes, this.#bytes.length)
      member.sent++
      this.sent++
    }
    socket.flush()
  }
}
