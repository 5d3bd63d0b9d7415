import { RRType } from '../../src/dns/iana/types.ts'

/** What the client needs of a reply, read by hand: our parser is not its own judge. */
export interface Reply {
  readonly rcode: number
  /** Rdata of A records in the answer section. */
  readonly addresses: readonly Uint8Array[]
  /** Of an SOA in the authority section; 0 = there is none. */
  readonly serial: number
}

/** Reads the reply to `question` (without other records but OPT); a string says what is wrong. */
export function readReply(packet: Buffer, question: Buffer): Reply | string {
  const flags = packet.readUInt16BE(2)
  const rcode = flags & 0xf
  if ((flags & 0x8000) === 0) return 'it is no response'
  if ((flags & 0x0200) !== 0) return 'it is cut'
  if (rcode !== 0 && rcode !== 3) return `RCODE ${rcode}`
  const end = skipName(question, 12) + 4
  if (packet.compare(question, 12, end, 12, end) !== 0) return 'it is to another question'
  const answers = packet.readUInt16BE(6)
  const records = answers + packet.readUInt16BE(8)
  const addresses: Uint8Array[] = []
  let serial = 0
  let at = end
  for (let i = 0; i < records; i++) {
    at = skipName(packet, at)
    const type = packet.readUInt16BE(at)
    const data = at + 10
    at = data + packet.readUInt16BE(at + 8)
    if (at > packet.length) return 'a record is longer than the reply'
    if (type === RRType.A && i < answers) addresses.push(packet.subarray(data, at))
    if (type === RRType.SOA) serial = packet.readUInt32BE(skipName(packet, skipName(packet, data)))
  }
  return { rcode, addresses, serial }
}

function skipName(packet: Buffer, start: number): number {
  let at = start
  while (packet[at] !== 0) {
    if (packet[at]! >= 0xc0) return at + 2
    at += 1 + packet[at]!
  }
  return at + 1
}
