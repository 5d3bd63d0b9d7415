import * as sockaddr from '../../sockaddr.ts'
import * as layouts from '../batch/layout.ts'
import { putPktinfo } from '../batch/pktinfo.ts'
import {
  IPV4_DESTINATION,
  IPV4_PORTS,
  IPV4_SOURCE,
  IPV6_DESTINATION,
  IPV6_PORTS,
  IPV6_SOURCE,
} from './frame.ts'

const { AF_INET, AF_INET6, NAME_IPV4, NAME_IPV6, NAME_PORT, NAME_SCOPE } = sockaddr
const { UNIT_CONTROL } = layouts

interface UnitOptions {
  readonly isIPv6: boolean
  /** The address that the UDP socket is bound to. */
  readonly host: string
  readonly ifindex: number
}

/**
 * Writes the addresses of the frame `ip` as the UDP socket would have received them: sockaddr and
 * control message (`BatchSocket.copyUnit`). `unit` is zero.
 */
export function putUnit(
  unit: Uint8Array,
  frames: Uint8Array,
  ip: number,
  { isIPv6, host, ifindex }: UnitOptions,
): void {
  const source = (ip + (isIPv6 ? IPV6_SOURCE : IPV4_SOURCE)) * 4
  const destination = (ip + (isIPv6 ? IPV6_DESTINATION : IPV4_DESTINATION)) * 4
  const octets = isIPv6 ? 16 : 4
  const port = (ip + (isIPv6 ? IPV6_PORTS : IPV4_PORTS)) * 4
  const peer = frames.subarray(source, source + octets)
  const own = frames.subarray(destination, destination + octets)
  const isSocketIPv6 = host.includes(':')
  unit[0] = isSocketIPv6 ? AF_INET6 : AF_INET
  unit.set(frames.subarray(port, port + 2), NAME_PORT)
  unit.set(isSocketIPv6 ? mapped(peer) : peer, isSocketIPv6 ? NAME_IPV6 : NAME_IPV4)
  // A link-local peer is reached through this interface only.
  if (isIPv6 && peer[0] === 0xfe && (peer[1]! & 0xc0) === 0x80) {
    new DataView(unit.buffer).setUint32(NAME_SCOPE, ifindex, true)
  }
  if (host !== '::' && host !== '0.0.0.0') return
  putPktinfo(unit, UNIT_CONTROL, isSocketIPv6 ? mapped(own) : own)
}

/** An IPv4 address as an IPv6 socket has it (RFC 4291 section 2.5.5.2). */
function mapped(address: Uint8Array): Uint8Array {
  if (address.length === 16) return address
  const result = new Uint8Array(16)
  result.fill(0xff, 10, 12)
  result.set(address, 12)
  return result
}
