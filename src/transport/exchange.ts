import type { Query } from '../dns/message/query.ts'
import type { ReplyStream } from '../dns/message/reply-stream.ts'

/**
 * One query and the room for its reply, lent by the server that answers. A transport fills in
 * `query.packet`, `packetAt`, `packetOctets`, `protocol` and the peer and local addresses. The packet must not
 * change until `serve` is done.
 */
export interface Exchange {
  readonly query: Query
  /**
   * 65535 octets, or as many as a reply of the transport can have; in that case the transport
   * provides the room. The reply is at the start once `serve` has returned or resolved.
   */
  reply: Uint8Array
  /** Offset of `reply` in the packet memory; -1 = it is elsewhere. */
  replyAt: number
  /** The source of the replies after STREAMED. */
  readonly stream?: ReplyStream | undefined
}

/**
 * Returned instead of a reply's length: this thread can't answer, since answering may wait. The
 * transport must ask the control thread.
 */
export const HAND_OVER = -1

/** Returned instead of a reply's length: the replies come from the exchange's `stream`. Only over TCP. */
export const STREAMED = -2

/** The server as transports see it. `E`: the exchanges that it lends. */
export interface QueryHandler<E extends Exchange = Exchange> {
  /** Returns an exchange, or undefined if too many are lent already: drop the query. */
  acquire(): E | undefined
  /**
   * Returns the length of the reply; 0 = send nothing. Returns a Promise only if answering has to
   * wait; a thread that can't wait returns HAND_OVER instead.
   */
  serve(exchange: E): number | Promise<number>
  /** Returns an exchange to the pool, once its reply is no longer read. */
  release(exchange: E): void
}

/** A listening socket. A reload replaces the handler and keeps the socket. */
export interface Listener {
  readonly port: number
  /** Gives later queries to `handler`. The old handler finishes those in flight. */
  setHandler(handler: QueryHandler): void
  /** Accepts no more queries, waits for those in flight for a bounded time, and closes. */
  close(): Promise<void>
}
