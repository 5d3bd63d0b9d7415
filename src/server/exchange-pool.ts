import type { Query } from '../dns/message/query.ts'
import type { ReplyStream } from '../dns/message/reply-stream.ts'
import type { Transaction } from '../plugin/transaction.ts'
import type { Exchange, QueryHandler } from '../transport/exchange.ts'
import type { Server } from './server.ts'

/** Queries that are in flight at once, over UDP and over TCP each, beside those that directives let wait. */
const IN_FLIGHT_MAX = 1024

/** Room for replies that idle exchanges keep for reuse. */
const IDLE_OCTETS_MAX = 4 * 2 ** 20

class ServerExchange implements Exchange {
  readonly query: Query
  reply: Uint8Array
  replyAt = -1
  readonly transaction: Transaction

  get stream(): ReplyStream | undefined {
    return this.transaction.stream
  }

  constructor(transaction: Transaction, replyOctets: number) {
    this.transaction = transaction
    this.reply = new Uint8Array(replyOctets)
    this.query = transaction.query
  }
}

/** Presents a server to the transports: lends exchanges from a bounded pool. */
export class ExchangePool implements QueryHandler<ServerExchange> {
  readonly #server: Server
  readonly #replyOctets: number
  readonly #inFlightMax: number
  readonly #idleMax: number
  readonly #idle: ServerExchange[] = []
  #inFlight = 0

  /** `replyOctets`: most octets of a reply. `waitingMax`: as in `ListenPlan`. */
  constructor(server: Server, replyOctets: number, waitingMax = 0) {
    this.#server = server
    this.#replyOctets = replyOctets
    this.#inFlightMax = IN_FLIGHT_MAX + waitingMax
    this.#idleMax = Math.floor(IDLE_OCTETS_MAX / replyOctets)
  }

  acquire(): ServerExchange | undefined {
    if (this.#inFlight >= this.#inFlightMax) return undefined
    this.#inFlight++
    return this.#idle.pop() ?? new ServerExchange(this.#server.acquire(), this.#replyOctets)
  }

  serve(exchange: ServerExchange): number | Promise<number> {
    return this.#server.serve(exchange.transaction, exchange.reply, exchange.replyAt)
  }

  release(exchange: ServerExchange): void {
    this.#inFlight--
    // The stream may hold a version of a zone.
    exchange.transaction.stream = undefined
    if (this.#idle.length < this.#idleMax) this.#idle.push(exchange)
    else this.#server.release(exchange.transaction)
  }
}
