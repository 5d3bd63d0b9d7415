export type PortProtocol = 'tcp' | 'udp' | 'sctp'

/** Ports of one protocol, both ends included. */
export interface PortRange {
  readonly protocol: PortProtocol
  readonly first: number
  readonly last: number
}
