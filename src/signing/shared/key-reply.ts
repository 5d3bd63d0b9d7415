/** The first octet of a reply: which form the octets behind it have. */
const FORMAT = 1
/** Octets of a character string, whose length is one octet (RFC 1035 section 3.3). */
const STRING_OCTETS_MAX = 255

/** The content of a reply. */
type KeyReply =
  /** The server has what the client has. */
  | { readonly kind: 'current' }
  | { readonly kind: 'sealed'; readonly octets: Uint8Array }
  /** The server sends another format. */
  | { readonly kind: 'unknown'; readonly format: number }

/** Returns rdata of a TXT record. `sealed`: none = the client has the keys already. */
export function composeKeyReply(sealed: Uint8Array): Uint8Array {
  const octets = Buffer.concat([Buffer.of(FORMAT), sealed])
  const strings: Uint8Array[] = []
  for (let at = 0; at < octets.length; at += STRING_OCTETS_MAX) {
    const string = octets.subarray(at, at + STRING_OCTETS_MAX)
    strings.push(Buffer.of(string.length), string)
  }
  return Buffer.concat(strings)
}

/** `rdata`: of a TXT record. */
export function scanKeyReply(rdata: Uint8Array): KeyReply {
  const strings: Uint8Array[] = []
  for (let at = 0; at < rdata.length; at += rdata[at]! + 1) {
    strings.push(rdata.subarray(at + 1, at + 1 + rdata[at]!))
  }
  const octets = Buffer.concat(strings)
  const format = octets[0] ?? 0
  if (format !== FORMAT) return { kind: 'unknown', format }
  return octets.length === 1 ? { kind: 'current' } : { kind: 'sealed', octets: octets.subarray(1) }
}
