/**
 * The reply to one query in many messages (RFC 5936 section 2.2), over TCP alone. A transport takes the
 * next when its peer has read enough of those before, and closes the stream once, whatever happened.
 */
export interface ReplyStream {
  /** Writes the next message to `out`, 65535 octets, and returns its length; 0 = there are no more. */
  next(out: Uint8Array): number
  /** True once it can't go on: the connection is to be cut. */
  readonly isBroken: boolean
  close(): void
}
