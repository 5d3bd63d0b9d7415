/**
 * The reply to one query in many messages (RFC 5936 section 2.2), only over TCP. A transport
 * requests the next message after its peer has read enough of the earlier ones. It closes the
 * stream exactly once, also after an error.
 */
export interface ReplyStream {
  /** Writes the next message to `out`, which has 65535 octets, and returns its length; 0 = no more messages. */
  next(out: Uint8Array): number
  /** True after a failure: the transport must close the connection. */
  readonly isBroken: boolean
  close(): void
}
