/** An Ethernet frame with a UDP packet, as a test wants it: an implementation independent of `frame.ts`. */
export interface PacketFields {
  readonly toMac: readonly number[]
  readonly fromMac: readonly number[]
  /** 4 or 16 octets each. */
  readonly source: readonly number[]
  readonly destination: readonly number[]
  readonly sourcePort: number
  readonly destinationPort: number
  readonly message: Uint8Array
  readonly hops?: number
  readonly identification?: number
  readonly trafficClass?: number
  readonly dontFragment?: boolean
  /** Octets behind the packet. */
  readonly padding?: number
  /** What stands in place of the right UDP checksum. */
  readonly udpChecksum?: number
}

export const OWN_MAC = [0x02, 0x11, 0x22, 0x33, 0x44, 0x55]
export const PEER_MAC = [0x06, 0xaa, 0xbb, 0xcc, 0xdd, 0xee]

const BASE = {
  toMac: OWN_MAC,
  fromMac: PEER_MAC,
  sourcePort: 4711,
  destinationPort: 53,
  message: Buffer.from('a question'),
}
export const IPV4_PACKET: PacketFields = {
  ...BASE,
  source: [192, 0, 2, 7],
  destination: [192, 0, 2, 1],
}
export const IPV6_PACKET: PacketFields = {
  ...BASE,
  source: [0x20, 1, 0xd, 0xb8, ...new Array(11).fill(0), 7],
  destination: [0x20, 1, 0xd, 0xb8, ...new Array(11).fill(0), 1],
}

/** RFC 1071, by octets in network byte order. */
export function internetChecksum(octets: Uint8Array): number {
  let sum = 0
  for (let i = 0; i < octets.length; i += 2) sum += octets[i]! * 256 + (octets[i + 1] ?? 0)
  while (sum > 0xffff) sum = (sum % 0x10000) + Math.floor(sum / 0x10000)
  return 0xffff - sum
}

const word = (value: number): number[] => [(value >> 8) & 255, value & 255]

function udpOf(packet: PacketFields): Buffer {
  const { source, destination, sourcePort, destinationPort, message } = packet
  const octets = 8 + message.length
  const header = [...word(sourcePort), ...word(destinationPort), ...word(octets)]
  const pseudo = [...source, ...destination, 0, 17, ...word(octets)]
  const computed = internetChecksum(Uint8Array.from([...pseudo, ...header, 0, 0, ...message]))
  const checksum = packet.udpChecksum ?? (computed === 0 ? 0xffff : computed)
  return Buffer.from([...header, ...word(checksum), ...message])
}

export function composePacket(packet: PacketFields): Buffer {
  const { toMac, fromMac, source, destination, hops = 64, trafficClass = 0 } = packet
  const udp = udpOf(packet)
  const padding = new Array(packet.padding ?? 0).fill(0xee)
  const isIPv4 = source.length === 4
  const ethernet = [...toMac, ...fromMac, ...(isIPv4 ? [8, 0] : [0x86, 0xdd])]
  if (!isIPv4) {
    const start = [0x60 | (trafficClass >> 4), (trafficClass & 15) << 4, 0, 0]
    const header = [...start, ...word(udp.length), 17, hops, ...source, ...destination]
    return Buffer.from([...ethernet, ...header, ...udp, ...padding])
  }
  const header = (checksum: number): number[] => [
    ...[0x45, trafficClass, ...word(20 + udp.length)],
    ...[...word(packet.identification ?? 0), packet.dontFragment === false ? 0 : 0x40, 0],
    ...[hops, 17, ...word(checksum), ...source, ...destination],
  ]
  const checksum = internetChecksum(Uint8Array.from(header(0)))
  return Buffer.from([...ethernet, ...header(checksum), ...udp, ...padding])
}

/** The packet that answers `packet` with `message`. */
export function replyTo(packet: PacketFields, message: Uint8Array): Buffer {
  return composePacket({
    toMac: packet.fromMac,
    fromMac: packet.toMac,
    source: packet.destination,
    destination: packet.source,
    sourcePort: packet.destinationPort,
    destinationPort: packet.sourcePort,
    message,
  })
}

/** Puts the right checksum into the IPv4 header of a frame that a test has changed. */
export function mendIPv4(frame: Buffer, headerOctets = 20): Buffer {
  frame.writeUInt16BE(0, 24)
  frame.writeUInt16BE(internetChecksum(frame.subarray(14, 14 + headerOctets)), 24)
  return frame
}
