import type { Query } from '../dns/message/query.ts'
import type { ReplyStream } from '../dns/message/reply-stream.ts'
import type { Transaction } from '../plugin/transaction.ts'
import type { Exchange, QueryHandler } from '../transport/exchange.ts'
import type { Server } from './server.ts'

/** Default bound on queries that are in flight at once, over UDP and over TCP each. */
export const IN_FLIGHT_MAX = 1024

/** Idle exchanges kept for reuse. */
const IDLE_MAX = 64

const REPLY_OCTETS_MAX = 65535

class ServerExchange implements Exchange {
  readonly query: Query
  reply: Uint8Array = new Uint8Array(REPLY_OCTETS_MAX)
  replyAt = -1
  readonly transaction: Transaction

  get stream(): ReplyStream | undefined {
    return this.transaction.stream
  }

  constructor(transaction: Transaction) {
    this.transaction = transaction
    this.query = transaction.query
  }
}

/** Presents a server to the transports: lends exchanges from a bounded pool. */
export class ExchangePool implements QueryHandler<ServerExchange> {
  readonly #server: Server
  readonly #inFlightMax: number
  readonly #idle: ServerExchange[] = []
  #inFlight = 0

  constructor(server: Server, inFlightMax: number = IN_FLIGHT_MAX) {
    this.#server = server
    this.#inFlightMax = inFlightMax
  }

  /** Queries that were acquired and not released. */
  get inFlight(): number {
    return this.#inFlight
  }

  acquire(): ServerExchange | undefined {
    if (this.#inFlight >= this.#inFlightMax) return undefined
    this.#inFlight++
    return this.#idle.pop() ?? new ServerExchange(this.#server.acquire())
  }

  serve(exchange: ServerExchange): number | Promise<number> {
    return this.#server.serve(exchange.transaction, exchange.reply, exchange.replyAt)
  }

  release(exchange: ServerExchange): void {
    this.#inFlight--
    // The stream may hold a version of a zone.
    exchange.transaction.stream = undefined
    if (this.#idle.length < IDLE_MAX) this.#idle.push(exchange)
    else this.#server.release(exchange.transaction)
  }
}
