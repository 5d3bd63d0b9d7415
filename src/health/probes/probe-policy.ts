import { type Cidr, isInNetwork, scanAddress, scanCidr } from '../../dns/text/address.ts'

/** A network that is not probed unless it is allowed, and why. */
interface RefusedNetwork {
  readonly cidr: Cidr
  /** As written. */
  readonly text: string
  readonly what: string
}

/** RFC 1918, RFC 6598 and RFC 4193. */
const PRIVATE: readonly string[] = [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  'fc00::/7',
]

/**
 * Networks that are not probed unless the administrator allows it, the most specific ones first. Otherwise any author
 * of records could make the server connect to itself, to services of its own networks, or to a metadata service of a
 * cloud, and read from the answers what they reply.
 */
const REFUSED: readonly RefusedNetwork[] = [
  refuse('0.0.0.0/8', 'this host'),
  refuse('127.0.0.0/8', 'loopback'),
  refuse('169.254.0.0/16', 'link-local, and metadata services'),
  refuse('100.100.100.200/32', 'a metadata service'),
  refuse('168.63.129.16/32', 'a metadata service'),
  refuse('192.0.0.192/32', 'a metadata service'),
  refuse('192.0.0.0/24', 'a special network'),
  refuse('198.18.0.0/15', 'a special network'),
  refuse('224.0.0.0/3', 'multicast and reserved'),
  refuse('::/127', 'unspecified and loopback'),
  refuse('fe80::/10', 'link-local'),
  refuse('fd00:ec2::/32', 'a metadata service'),
  refuse('fd20:ce::/32', 'a metadata service'),
  refuse('fd00:c1::a9fe:a9fe/128', 'a metadata service'),
  refuse('fec0::/10', 'a special network'),
  refuse('ff00::/8', 'multicast'),
  // A translator of this site decides which IPv4 address these reach (RFC 8215).
  refuse('64:ff9b:1::/48', 'a special network'),
  // Teredo embeds the address of a client (RFC 4380 section 4).
  refuse('2001::/32', 'a special network'),
  ...PRIVATE.map((text) => refuse(text, 'a private network')),
]

/** IPv6 prefixes that embed the IPv4 address that is reached. `at`: index of its first octet. */
const EMBEDDING: readonly { readonly cidr: Cidr; readonly at: number }[] = [
  // RFC 4291 section 2.5.5, SIIT (RFC 2765 section 2.1), and NAT64 (RFC 6052 section 2.1; RFC 8215
  // with a prefix of 96 bits).
  ...['::ffff:0:0/96', '::/96', '::ffff:0:0:0/96', '64:ff9b::/96', '64:ff9b:1::/48'].map((text) => {
    return { cidr: cidrOf(text), at: 12 }
  }),
  // 6to4 (RFC 3056 section 2).
  { cidr: cidrOf('2002::/16'), at: 2 },
]

const PRIVATE_NETWORKS = PRIVATE.map(cidrOf)

/** True for an IP address, given as text, of a private network, or that embeds one. False for other text. */
export function isPrivateAddress(text: string): boolean {
  const address = scanAddress(text)
  if (address === undefined) return false
  return formsOf(address.bytes).some((bytes) => PRIVATE_NETWORKS.some((cidr) => isIn(bytes, cidr)))
}

/** Decides which addresses may be probed. */
export class ProbePolicy {
  readonly #allowed: readonly Cidr[]

  /** `allowed`: networks to probe although they are refused by default. */
  constructor(allowed: readonly Cidr[] = []) {
    this.#allowed = allowed
  }

  /** Returns why an address, given as text, is not probed; '' = it may be probed. */
  refusal(text: string): string {
    if (scanAddress(text) === undefined) return 'it is not an IP address'
    const found = this.findRefused(text)
    return found === undefined ? '' : `${text} is not probed: ${found.what}`
  }

  /** Returns the refused network that contains an IP address. Undefined: the address may be probed. */
  findRefused(text: string): RefusedNetwork | undefined {
    const address = scanAddress(text)
    if (address === undefined || this.#allows(address.bytes)) return undefined
    for (const bytes of formsOf(address.bytes)) {
      const found = REFUSED.find(({ cidr }) => isIn(bytes, cidr))
      // The network of an address that is embedded may be allowed, but does not excuse the one around it.
      if (found !== undefined && !this.#allows(bytes)) return found
    }
    return undefined
  }

  #allows(bytes: Uint8Array): boolean {
    return this.#allowed.some((cidr) => isIn(bytes, cidr))
  }
}

/** Returns an address as written, and the IPv4 addresses that it embeds. */
function formsOf(written: Uint8Array): readonly Uint8Array[] {
  const embedding = EMBEDDING.find(({ cidr }) => isIn(written, cidr))
  const places = embedding === undefined ? [] : [embedding.at]
  if (isIsatap(written)) places.push(ISATAP_AT)
  return [written, ...places.map((at) => written.subarray(at, at + 4))]
}

/** Place of the IPv4 address in an ISATAP address. */
const ISATAP_AT = 12

/** True for an interface identifier 0:5efe:a.b.c.d or 200:5efe:a.b.c.d, with any prefix (RFC 5214 section 6.1). */
function isIsatap(bytes: Uint8Array): boolean {
  const [high, zero, oui, type] = bytes.subarray(8)
  return (high === 0 || high === 2) && zero === 0 && oui === 0x5e && type === 0xfe
}

function refuse(text: string, what: string): RefusedNetwork {
  return { cidr: cidrOf(text), text, what }
}

function cidrOf(text: string): Cidr {
  return scanCidr(text)!
}

function isIn(bytes: Uint8Array, cidr: Cidr): boolean {
  return bytes.length === cidr.bytes.length && isInNetwork(bytes, cidr)
}
