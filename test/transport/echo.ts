import { Query } from '../../src/dns/message/query.ts'
import { type Exchange, HAND_OVER, type QueryHandler } from '../../src/transport/exchange.ts'

class EchoExchange implements Exchange {
  readonly query: Query = new Query()
  reply: Uint8Array = new Uint8Array(65535)
  replyAt = -1
}

/** What a query asks of the echo, in its first octet. */
export const Wish = {
  /** The packet itself at once. */
  Echo: 0x65,
  /** The packet itself when `answerWaiting` is called. */
  Wait: 0x77,
  /** Nothing. */
  Silence: 0x73,
  /** 60000 octets, or as many as the transport has room for. */
  Big: 0x62,
  /** As many octets as no datagram over IPv4 can have. */
  Long: 0x4c,
  /** The peer's address, family and port, and the local port. */
  Peer: 0x70,
  /** The local address and family. */
  Local: 0x6c,
  /** The mark of the echo. */
  Mark: 0x6d,
} as const

export interface EchoOptions {
  readonly mark?: number
  /** True in a thread that can't wait. */
  readonly handsOver?: boolean
}

/** A handler that knows no DNS: transports carry any octets. Exchanges are few, so that leaks show. */
export class Echo implements QueryHandler<EchoExchange> {
  readonly #idle: EchoExchange[]
  readonly #size: number
  readonly #waiting: (() => void)[] = []
  readonly mark: number
  readonly #handsOver: boolean
  served = 0

  constructor(size = 256, { mark = 0, handsOver = false }: EchoOptions = {}) {
    this.#size = size
    this.mark = mark
    this.#handsOver = handsOver
    this.#idle = Array.from({ length: size }, () => new EchoExchange())
  }

  get inFlight(): number {
    return this.#size - this.#idle.length
  }

  get waiting(): number {
    return this.#waiting.length
  }

  acquire(): EchoExchange | undefined {
    return this.#idle.pop()
  }

  serve(exchange: EchoExchange): number | Promise<number> {
    this.served++
    const { query, reply } = exchange
    const octets = query.packetOctets
    reply.set(query.packet.subarray(0, octets))
    switch (query.packet[0]) {
      case Wish.Silence:
        return 0
      case Wish.Big:
        return Math.min(60_000, reply.length)
      case Wish.Long:
        return 65_535
      case Wish.Mark:
        reply[1] = this.mark
        return 2
      case Wish.Local:
        reply.set(query.localAddress)
        reply[16] = query.localFamily
        return 17
      case Wish.Peer:
        reply.set(query.peerAddress)
        reply.set([query.peerFamily, query.protocol], 16)
        new DataView(reply.buffer, reply.byteOffset).setUint16(18, query.peerPort)
        new DataView(reply.buffer, reply.byteOffset).setUint16(20, query.localPort)
        return 22
      case Wish.Wait:
        if (this.#handsOver) return HAND_OVER
        return new Promise((resolve) => {
          this.#waiting.push(() => resolve(octets))
        })
      default:
        return octets
    }
  }

  release(exchange: EchoExchange): void {
    if (this.#idle.includes(exchange)) throw new Error('released twice')
    this.#idle.push(exchange)
  }

  /** Answers what waits, the youngest first. */
  answerWaiting(): void {
    for (const answer of this.#waiting.splice(0).reverse()) answer()
  }
}

/** Waits until `holds` says true, looking again after each turn of the loop; throws after `limitMs`. */
export async function until(what: string, holds: () => boolean, limitMs = 120_000): Promise<void> {
  const end = performance.now() + limitMs
  while (!holds()) {
    if (performance.now() > end) throw new Error(`waited too long until ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}
