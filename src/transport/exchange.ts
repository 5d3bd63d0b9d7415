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

/** Returned instead of the length of a reply made in place: the query gets no reply. */
export const SILENT = -3

/** Describes packets that a transport answers in their own memory. */
export interface PacketSource {
  /** Fills in the packet in `slot`, and its source and destination addresses. */
  describe(slot: number, query: Query): void
}

/** The server as transports see it. `E`: the exchanges that it lends. */
export interface QueryHandler<E extends Exchange = Exchange> {
  /** Returns an exchange, or undefined if too many are lent already: drop the query. */
  acquire(): E | undefined
  /**
   * Returns the length of the reply; 0 = send nothing. Returns a Promise only if answering has to
   * wait; a thread that can't wait returns HAND_OVER instead.
   */
  serve(exchange: E): number | Promise<number>
  /**
   * Answers the query of `octets` octets at `at` of the packet memory (base/packet-memory.ts) in
   * its place, which has `room` octets, and returns the length of the reply. 0 = the packet is
   * unchanged: call `serve`. SILENT = no reply is sent. If the exchange is needed, `source`
   * describes the packet by its `slot`. Absent = the server has no fast path.
   */
  serveInPlace?(
    exchange: E,
    at: number,
    octets: number,
    room: number,
    source: PacketSource,
    slot: number,
  ): number
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
