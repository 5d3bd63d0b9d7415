/** Maximum of labels of a name, without the root: 255 octets / 2 - 1 (RFC 1035 section 2.3.4). */
export const LABELS_MAX = 127

/** A name, and room because it is read and written by four octets. */
export const NAME_ROOM_OCTETS = 264

/** Results of `parseQuery`: the reply that the packet deserves. */
export const ParseStatus = {
  /** A well-formed question: answer it. */
  Ok: 0,
  /** Too short, or itself a response: send no reply, because a reply could loop. */
  Ignore: 1,
  /** Malformed: reply FORMERR, with the question if it could be read (`questionOctets` > 0). */
  FormErr: 2,
  /** An opcode that the server does not support: reply NOTIMP. */
  NotImp: 3,
  /** EDNS version above 0: reply BADVERS (RFC 6891 section 6.1.3). */
  BadVers: 4,
} as const
export type ParseStatus = (typeof ParseStatus)[keyof typeof ParseStatus]

/** Transport protocol of the query. */
export const Protocol = { Udp: 0, Tcp: 1 } as const
export type Protocol = (typeof Protocol)[keyof typeof Protocol]
/** By `Protocol`; for labels. */
export const PROTOCOL_NAMES = ['udp', 'tcp'] as const

const NO_OCTETS = new Uint8Array(0)

/**
 * One received question, parsed in place. Reused: every `parseQuery` resets it. Handlers must not
 * keep it.
 */
export class Query {
  /** The packet; valid in 0..packetOctets-1. Owned by the transport. */
  packet: Uint8Array = new Uint8Array(0)
  /** Offset of the packet in the packet memory; -1 = it is elsewhere. */
  packetAt = -1
  packetOctets = 0

  id = 0
  /** The header's second word: QR..RCODE as received. */
  flags = 0
  opcode = 0
  qtype = 0
  qclass = 0
  /** qname in lower-case wire form, root label included: 1..255 octets in `qnameOctets`. */
  readonly qname: Uint8Array = new Uint8Array(new ArrayBuffer(NAME_ROOM_OCTETS))
  /** The same octets by four. Octets behind the name have no meaning. */
  readonly nameWords: Uint32Array = new Uint32Array(this.qname.buffer)
  readonly nameView: DataView = new DataView(this.qname.buffer)
  qnameOctets = 0
  /** Labels without the root: 0..LABELS_MAX. */
  labelCount = 0
  /** Offset in `qname` of label i, leftmost first; entry `labelCount` is the root. */
  readonly labelOffset: Uint8Array = new Uint8Array(LABELS_MAX + 1)
  /** Unfinished hash (see dns/name/hash) of the suffix that starts at label i; `labelCount`: root. */
  readonly suffixHash: Int32Array = new Int32Array(LABELS_MAX + 1)
  /** Octets of the question section from offset 12; 0 if it is invalid. */
  questionOctets = 0

  /** Offset of the TSIG record at the end of the packet; 0 = the packet is unsigned. */
  tsigOffset = 0

  /** True if the packet carried an OPT record. */
  hasEdns = false
  ednsVersion = 0
  /** The requestor's UDP payload size; 0 without EDNS. */
  payloadOctets = 0
  dnssecOk = false
  /** The flag CO: the client accepts NXDOMAIN in compact denials (RFC 9824 section 5.1). */
  compactOk = false
  nsidRequested = false
  zoneVersionRequested = false
  /** COOKIE option data in `packet`: 0 octets if absent, else 8 or 16..40 (RFC 7873 section 4). */
  cookieOffset = 0
  cookieOctets = 0
  /** True if the query has an ECS option (RFC 7871). */
  hasEcs = false
  /** 1 IPv4, 2 IPv6; 0 = no option, or an option that only asks not to use a subnet. */
  ecsFamily = 0
  ecsSourceBits = 0
  /** The ECS address, zero-padded; IPv4 in octets 0..3. */
  readonly ecsAddress: Uint8Array = new Uint8Array(new ArrayBuffer(16))
  /** The same, by four octets. */
  readonly ecsWords: Uint32Array = new Uint32Array(this.ecsAddress.buffer)
  /** True if the client requested edns-tcp-keepalive (RFC 7828); no meaning on UDP. */
  keepaliveRequested = false
  /** True if the listener of the TCP connection is closing. Filled in by the transport. */
  connectionEnds = false

  protocol: Protocol = Protocol.Udp
  /** Source of the packet: family 1 or 2, IPv4 in octets 0..3. Filled in by the transport. */
  readonly peerAddress: Uint8Array = new Uint8Array(new ArrayBuffer(16))
  /** The same, by four octets. */
  readonly peerWords: Int32Array = new Int32Array(this.peerAddress.buffer)
  peerFamily = 1
  peerPort = 0
  /**
   * The TLVs of the PROXY header that named the peer: `proxyTlvsOctets` octets at `proxyTlvsAt`. 0 octets = none.
   * Filled in by a transport that serves proxies.
   */
  proxyTlvs: Uint8Array = NO_OCTETS
  proxyTlvsAt = 0
  proxyTlvsOctets = 0
  /** Destination of the packet, as above. The transport sets this field to an array of its own. */
  localAddress: Uint8Array = new Uint8Array(16)
  localFamily = 1
  localPort = 0

  /**
   * The client that GEO decisions are for: the peer, or the ECS address after `geoip` with
   * `edns-subnet` selected it (`clientIsEcs`). Bits: number of known bits of the address (32, 128,
   * or the ECS source prefix length). The array is the peer's or that of the ECS address.
   */
  clientAddress: Uint8Array = new Uint8Array(16)
  clientFamily = 1
  clientBits = 32
  clientIsEcs = false
}
