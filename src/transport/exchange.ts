import type { Query } from '../dns/message/query.ts'
import type { ReplyStream } from '../dns/message/reply-stream.ts'

/**
 * One query and the room for its reply, lent by whoever answers. A transport fills in `query.packet`,
 * `packetOctets`, `protocol` and the peer and local addresses; the packet must stay as it is until
 * `serve` is done.
 */
export interface Exchange {
  readonly query: Query
  /**
   * 65535 octets, or as many as a reply of the transport can have, which then gives the room itself; the
   * reply stands at the start once `serve` returned or resolved.
   */
  reply: Uint8Array
  /** Where the replies come from after STREAMED. */
  readonly stream?: ReplyStream | undefined
}

/**
 * Instead of a reply's length: this thread can't answer, since answering may wait; the control thread
 * is to be asked.
 */
export const HAND_OVER = -1

/** Instead of a reply's length: the replies come out of the exchange's `stream`. Only over TCP. */
export const STREAMED = -2

/** Instead of the length of a reply made in place: the query gets none. */
export const SILENT = -3

/** Where the packets of a transport are described that are answered in their own memory. */
export interface PacketSource {
  /** Fills in the packet in `slot`, and the addresses it came from and to. */
  describe(slot: number, query: Query): void
}

/** What transports know of the server. `E`: the exchanges that it lends. */
export interface QueryHandler<E extends Exchange = Exchange> {
  /** An exchange, or undefined if too many are lent already: drop the query. */
  acquire(): E | undefined
  /**
   * Length of the reply; 0 = send nothing. A Promise only where answering has to wait; HAND_OVER
   * instead, in a thread that can't.
   */
  serve(exchange: E): number | Promise<number>
  /**
   * Answers the query of `octets` octets at `at` of the packet memory (base/packet-memory.ts) in its place, where it
   * has `room` octets, and returns the length of the reply; 0 = it is as it was, and for `serve`; SILENT = none is sent. `exchange`: for what
   * that needs, `source` describes the packet by its `slot`. Absent = there is no such short way.
   */
  serveInPlace?(
    exchange: E,
    at: number,
    octets: number,
    room: number,
    source: PacketSource,
    slot: number,
  ): number
  /** Takes an exchange back once its reply needs to be read no more. */
  release(exchange: E): void
}

/** A listening socket. A reload swaps the handler and leaves the socket as it is. */
export interface Listener {
  readonly port: number
  /** Later queries go to `handler`; those in flight end where they began. */
  setHandler(handler: QueryHandler): void
  /** Takes no more queries, waits for those in flight, but not for ever, and closes. */
  close(): Promise<void>
}
