import type { Query } from '../../dns/message/query.ts'
import { scanAddress } from '../../dns/text/address.ts'
import { copyIPv4, copyIPv6 } from '../udp/batch/octets.ts'

/** Results of `ProxyHeader.read`. */
export const HeaderRead = {
  /** The octets do not start with a header. */
  None: 0,
  /** More octets are necessary. */
  Partial: 1,
  Whole: 2,
  Malformed: 3,
} as const
export type HeaderRead = (typeof HeaderRead)[keyof typeof HeaderRead]

/** Longest header. A longer one is malformed: only a client's certificate in a TLV needs more. */
export const PROXY_HEADER_OCTETS_MAX = 2048

/** Octets of the longest line of version 1, with CR LF. */
const LINE_OCTETS_MAX = 107
const LINE_START = Uint8Array.from(Buffer.from('PROXY'))
const LF = 0x0a
const CR = 0x0d

const SIGNATURE = Uint8Array.of(13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10)
/** Version 2: signature 0..11, version and command 12, family and transport 13, length of the rest 14..15. */
const FIXED_OCTETS = 16
const COMMAND_LOCAL = 0x20
const COMMAND_PROXY = 0x21
/** Source, destination, source port, destination port. */
const IPV4_OCTETS = 12
const IPV6_OCTETS = 36
const UNIX_OCTETS = 216
const KIND_UDP4 = 0x12
const KIND_UDP6 = 0x22

/**
 * The header of the PROXY protocol, version 1 or 2, that a proxy sends in front of the octets of a client. Whether the
 * client used TCP or UDP has no meaning here: a proxy may send the query of a DoH client over UDP.
 */
export class ProxyHeader {
  /** 1 or 2. */
  version = 0
  octets = 0
  /** Family of the client's address; 0 = the header has none: LOCAL, UNKNOWN, or not an IP address. */
  family = 0
  /** As `Query.peerAddress`. */
  readonly address: Uint8Array = new Uint8Array(new ArrayBuffer(16))
  /** The same, by four octets. */
  readonly #words: Int32Array = new Int32Array(this.address.buffer)
  port = 0
  /** Offset of the TLVs in the octets that were read. */
  tlvsAt = 0
  tlvsOctets = 0

  /** Reads the header at `at`, of octets that end before `end`. Version 2 allocates nothing. @hot */
  read(octets: Uint8Array, at: number, end: number): HeaderRead {
    if (at === end) return HeaderRead.None
    if (octets[at] === SIGNATURE[0]) {
      const found = startsWith(octets, at, end, SIGNATURE)
      return found === HeaderRead.Whole ? this.#readSecond(octets, at, end) : found
    }
    if (octets[at] !== LINE_START[0]) return HeaderRead.None
    const found = startsWith(octets, at, end, LINE_START)
    return found === HeaderRead.Whole ? this.#readFirst(octets, at, end) : found
  }

  #readSecond(octets: Uint8Array, at: number, end: number): HeaderRead {
    if (end - at < FIXED_OCTETS) return HeaderRead.Partial
    const command = octets[at + 12]!
    const addressOctets = addressOctetsOf(octets[at + 13]!)
    const length = (octets[at + 14]! << 8) | octets[at + 15]!
    const isProxied = command === COMMAND_PROXY
    if (!isProxied && command !== COMMAND_LOCAL) return HeaderRead.Malformed
    if (addressOctets === -1 || (isProxied && length < addressOctets)) return HeaderRead.Malformed
    if (FIXED_OCTETS + length > PROXY_HEADER_OCTETS_MAX) return HeaderRead.Malformed
    if (end - at < FIXED_OCTETS + length) return HeaderRead.Partial
    this.version = 2
    this.octets = FIXED_OCTETS + length
    const start = at + FIXED_OCTETS
    this.tlvsAt = start + addressOctets
    // The rest of a LOCAL header has no meaning, and may be shorter than an address.
    this.tlvsOctets = isProxied ? length - addressOctets : 0
    this.family = 0
    if (!isProxied) return HeaderRead.Whole
    if (addressOctets === IPV4_OCTETS) {
      this.family = copyIPv4(octets, start, this.address)
      this.port = (octets[start + 8]! << 8) | octets[start + 9]!
    } else if (addressOctets === IPV6_OCTETS) {
      this.family = copyIPv6(octets, start, this.address)
      this.port = (octets[start + 32]! << 8) | octets[start + 33]!
    }
    return HeaderRead.Whole
  }

  /** A line of text: `PROXY TCP4 192.0.2.1 192.0.2.53 40000 53`. Only connections start with one. */
  #readFirst(octets: Uint8Array, at: number, end: number): HeaderRead {
    const limit = Math.min(end, at + LINE_OCTETS_MAX)
    let last = at
    while (last < limit && octets[last] !== LF) last++
    if (last === limit)
      return limit === at + LINE_OCTETS_MAX ? HeaderRead.Malformed : HeaderRead.Partial
    if (octets[last - 1] !== CR) return HeaderRead.Malformed
    this.version = 1
    this.octets = last + 1 - at
    this.family = 0
    this.tlvsOctets = 0
    const words = Buffer.from(octets.subarray(at, last - 1))
      .toString('latin1')
      .split(' ')
    const [start, kind] = words
    if (start !== 'PROXY') return HeaderRead.Malformed
    if (kind === 'UNKNOWN') return HeaderRead.Whole
    return this.#takeWords(words) ? HeaderRead.Whole : HeaderRead.Malformed
  }

  #takeWords(words: readonly string[]): boolean {
    const [, kind, from = '', to = '', fromPort = '', toPort = ''] = words
    if (words.length !== 6 || (kind !== 'TCP4' && kind !== 'TCP6')) return false
    const [source, destination] = [scanAddress(from), scanAddress(to)]
    const [port, otherPort] = [scanPort(fromPort), scanPort(toPort)]
    if (source === undefined || destination === undefined || port === -1 || otherPort === -1)
      return false
    // NGINX writes TCP6 with an IPv4 address if only its own connection has IPv6.
    if (kind === 'TCP4' && (source.family === 2 || destination.family === 2)) return false
    this.family =
      source.family === 1
        ? copyIPv4(source.bytes, 0, this.address)
        : copyIPv6(source.bytes, 0, this.address)
    this.port = port
    return true
  }

  /** Makes the client of the header the peer of `query`. `octets`: those that were read. @hot */
  describe(query: Query, octets: Uint8Array): void {
    const words = this.#words
    const { peerWords } = query
    for (let i = 0; i < 4; i++) peerWords[i] = words[i]!
    query.peerFamily = this.family
    query.peerPort = this.port
    query.proxyTlvs = octets
    query.proxyTlvsAt = this.tlvsAt
    query.proxyTlvsOctets = this.tlvsOctets
  }
}

/** The client of a header, and its TLVs. */
type ProxiedPeer = Pick<
  Query,
  'peerAddress' | 'peerFamily' | 'peerPort' | 'proxyTlvs' | 'proxyTlvsAt' | 'proxyTlvsOctets'
>

/** Returns a header of version 2. */
export function composeProxyHeader(peer: ProxiedPeer): Uint8Array {
  const { peerFamily, peerAddress, peerPort, proxyTlvs, proxyTlvsAt, proxyTlvsOctets } = peer
  const isIPv4 = peerFamily === 1
  const addressOctets = isIPv4 ? IPV4_OCTETS : IPV6_OCTETS
  const header = new Uint8Array(FIXED_OCTETS + addressOctets + proxyTlvsOctets)
  const view = new DataView(header.buffer)
  header.set(SIGNATURE)
  header[12] = COMMAND_PROXY
  header[13] = isIPv4 ? KIND_UDP4 : KIND_UDP6
  view.setUint16(14, header.length - FIXED_OCTETS)
  header.set(peerAddress.subarray(0, isIPv4 ? 4 : 16), FIXED_OCTETS)
  view.setUint16(FIXED_OCTETS + (isIPv4 ? 8 : 32), peerPort)
  header.set(
    proxyTlvs.subarray(proxyTlvsAt, proxyTlvsAt + proxyTlvsOctets),
    FIXED_OCTETS + addressOctets,
  )
  return header
}

/** Whole, Partial or None, whether the octets at `at` start with `start`. */
function startsWith(octets: Uint8Array, at: number, end: number, start: Uint8Array): HeaderRead {
  for (let i = 0; i < start.length; i++) {
    if (at + i === end) return HeaderRead.Partial
    if (octets[at + i] !== start[i]) return HeaderRead.None
  }
  return HeaderRead.Whole
}

/** Octets of the two addresses of a family and transport; -1 = these are not defined. */
function addressOctetsOf(kind: number): number {
  switch (kind) {
    case 0:
      return 0
    case 0x11:
    case KIND_UDP4:
      return IPV4_OCTETS
    case 0x21:
    case KIND_UDP6:
      return IPV6_OCTETS
    case 0x31:
    case 0x32:
      return UNIX_OCTETS
    default:
      return -1
  }
}

/** Decimal, without a sign and leading zeros; -1 = it is not a port. */
function scanPort(text: string): number {
  if (!/^(?:0|[1-9]\d{0,4})$/.test(text)) return -1
  const port = Number(text)
  return port <= 0xffff ? port : -1
}
