/** Counts of events of the TCP connections of a process, or of one listener. */
export interface TcpCounters {
  /** Connections that are open now. */
  open: number
  /** Queries for which no exchange was free; their connections are cut. */
  dropped: number
  /** Connections over a limit: refused, or ended to make room. */
  refused: number
  /** Connections cut because the peer did not send or read in time. */
  timedOut: number
  /** Connections cut because the peer left too much unread. */
  overrun: number
  /** Connections cut because of a message that is too short or too long. */
  malformed: number
  /** Resets and other errors of sockets. */
  errors: number
}

export function createTcpCounters(): TcpCounters {
  return { open: 0, dropped: 0, refused: 0, timedOut: 0, overrun: 0, malformed: 0, errors: 0 }
}
