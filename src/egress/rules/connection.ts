import type { Address } from '../../dns/text/address.ts'
import type { PortProtocol, PortRange } from './port-range.ts'

/** What a client opens. */
export interface Connection {
  readonly address: Address
  /** `other`: one without ports, such as ICMP. */
  readonly protocol: PortProtocol | 'other'
  /** 0..65535; without meaning if the protocol is `other`. */
  readonly port: number
}

/** The rules that select a name, as `CompiledRules.rulesOf` returns them, with the end of the name. */
export interface MatchedName {
  readonly rules: readonly number[]
  /** Monotonic milliseconds, finite. */
  readonly endMs: number
  /** True if its TTL has ended: it counts only for rules that last as long as connections are open. */
  readonly isZombie: boolean
}

/** True if the ports of a rule include the port. */
export function includesPort(
  ports: readonly PortRange[] | undefined,
  protocol: Connection['protocol'],
  port: number,
): boolean {
  if (ports === undefined) return true
  for (const range of ports) {
    if (range.protocol === protocol && range.first <= port && port <= range.last) return true
  }
  return false
}
