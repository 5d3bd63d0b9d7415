/** A connection that the kernel tracks. Addresses in canonical form. */
export interface Flow {
  /** Number of the protocol: 6 = TCP, 17 = UDP. */
  readonly protocol: number
  /** The original direction, as the client sent it. */
  readonly source: string
  readonly destination: string
  /** 0 = the protocol has no ports. */
  readonly port: number
  /** Where the packets go, once destination NAT has changed the destination. */
  readonly target: string
  readonly targetPort: number
  /** False: both sides have ended it, and the kernel remembers it for late packets. */
  readonly isOpen: boolean
}

export type OnFlow = (flow: Flow) => void

export interface CutResult {
  /** Connections that were ended. */
  readonly count: number
  /** Why others may continue; '' = none do. */
  readonly fault: string
}

/** The connections that the kernel tracks. */
export interface Connections {
  /**
   * Reports all connections, also those that have just ended. Resolves with '' if these were all, otherwise with the
   * reason why some may be missing.
   */
  dump(onFlow: OnFlow): Promise<string>
  /** Reports new connections until `close`. Some may be missing. */
  watch(onFlow: OnFlow): void
  /** Ends all connections that differ from this one at most in the port of the source. */
  cut(flow: Flow): Promise<CutResult>
  close(): void
}
