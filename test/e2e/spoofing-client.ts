import type { Test } from 'tap'
import { Query } from '../../src/dns/message/query.ts'
import { writeSockaddr } from '../../src/transport/sockaddr.ts'
import { UNIT_CONTROL, UNIT_PACKET } from '../../src/transport/udp/batch/layout.ts'
import { loadLibc } from '../../src/transport/udp/batch/libc.ts'
import { BatchSocket } from '../../src/transport/udp/batch/socket.ts'

/** Queries that may wait for their replies. */
const WINDOW = 256
/** What is not answered by then is not going to be. */
const PATIENCE_MS = 1000

/**
 * Sends queries to 127.0.0.1 from any addresses of 127.0.0.0/8, and counts the octets of both directions: one socket
 * on the wildcard address, with IP_PKTINFO for the source.
 */
export class SpoofingClient {
  sent = 0
  sentOctets = 0
  replies = 0
  replyOctets = 0
  /** Replies with TC. */
  truncated = 0
  #lost = 0
  readonly #socket = new BatchSocket(loadLibc(), {
    host: '0.0.0.0',
    port: 0,
    receiveBufferOctets: 1 << 22,
  })
  readonly #query = new Query()
  readonly #place = new Uint8Array(UNIT_PACKET + 12)

  constructor(t: Test, port: number) {
    t.teardown(() => this.#socket.close())
    writeSockaddr(this.#place, 0, '127.0.0.1', port)
    // struct cmsghdr of 28 octets, IPPROTO_IP, IP_PKTINFO; struct in_pktinfo.
    const control = new Uint32Array([28, 0, 0, 8, 0, 0, 0])
    this.#place.set(new Uint8Array(control.buffer), UNIT_CONTROL)
  }

  /** One query from each of `count` addresses, from number `first` on: number 1 is 127.1.0.1. `turn`: run in between. */
  async flood(
    first: number,
    count: number,
    query: Uint8Array,
    addressOf: (i: number) => number = (i) => i,
    turn: () => Promise<void> = async () => {},
  ): Promise<void> {
    let idleSinceMs = performance.now()
    for (let next = 0; next < count || this.#waiting > 0; ) {
      const replies = this.replies
      this.#receive()
      if (this.replies > replies) idleSinceMs = performance.now()
      const room = Math.max(0, WINDOW - this.#waiting)
      const end = Math.min(count, next + room)
      if (end === next && performance.now() - idleSinceMs > PATIENCE_MS) {
        this.#lost = this.sent - this.replies
      }
      for (; next < end; next++) this.#send(addressOf(first + next), query)
      this.#socket.flush()
      await turn()
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  get #waiting(): number {
    return this.sent - this.replies - this.#lost
  }

  #send(address: number, query: Uint8Array): void {
    const at = UNIT_CONTROL + 20
    this.#place.set([127, 1 + (address >> 16), (address >> 8) & 255, address & 255], at)
    const unit = this.#socket.takeUnit(this.#place, this.#query)
    this.#socket.reply(unit, query, query.length)
    this.#socket.flush()
    this.#socket.giveBack(unit)
    this.sent++
    this.sentOctets += query.length
  }

  #receive(): void {
    for (let count = this.#socket.receive(); count > 0; count = this.#socket.receive()) {
      for (let slot = 0; slot < count; slot++) {
        this.#socket.describe(slot, this.#query)
        const { packet, packetOctets } = this.#query
        this.replies++
        this.replyOctets += packetOctets
        if ((packet[2]! & 2) !== 0) this.truncated++
      }
    }
  }
}
