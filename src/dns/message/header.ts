/** Flags of the header's second word (RFC 1035 section 4.1.1, RFC 4035 section 3). */
export const HeaderFlag = {
  QR: 0x8000,
  AA: 0x0400,
  TC: 0x0200,
  RD: 0x0100,
  RA: 0x0080,
  Z: 0x0040,
  AD: 0x0020,
  CD: 0x0010,
} as const

/** The bits of the second word that are flags; the others are opcode and rcode. */
export const HEADER_FLAGS_MASK = 0x87f0

/** The DO bit of an OPT record's flags (RFC 3225). */
export const EDNS_DNSSEC_OK = 0x8000

/** Longest message that TCP and UDP can carry. */
export const MESSAGE_OCTETS_MAX = 65535
