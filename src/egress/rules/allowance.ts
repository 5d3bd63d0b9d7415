import type { PortRange } from './port-range.ts'

/** Ports of one address that a client may connect to because of names. */
export interface Allowance {
  /** Undefined = all ports of all protocols. */
  readonly ports: PortRange | undefined
  /** Monotonic milliseconds. */
  readonly endMs: number
}
