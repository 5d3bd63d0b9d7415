import { type Cidr, isInNetwork, scanAddress, scanCidr } from '../../dns/text/address.ts'

/**
 * Networks that are not probed unless the operator allows it. Otherwise any author of records could
 * make the server connect to itself, to local services, or to a cloud's metadata service.
 */
const REFUSED: readonly { readonly cidr: Cidr; readonly what: string }[] = [
  refuse('0.0.0.0/8', 'this host'),
  refuse('127.0.0.0/8', 'loopback'),
  refuse('169.254.0.0/16', 'link-local, and metadata services'),
  refuse('100.100.100.200/32', 'a metadata service'),
  refuse('168.63.129.16/32', 'a metadata service'),
  refuse('192.0.0.192/32', 'a metadata service'),
  refuse('224.0.0.0/3', 'multicast and reserved'),
  refuse('::/127', 'unspecified and loopback'),
  refuse('fe80::/10', 'link-local'),
  refuse('fd00:ec2::/32', 'a metadata service'),
  refuse('fd20:ce::/32', 'a metadata service'),
  refuse('fd00:c1::a9fe:a9fe/128', 'a metadata service'),
  refuse('ff00::/8', 'multicast'),
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

/** RFC 1918, RFC 6598 and RFC 4193. */
const PRIVATE: readonly Cidr[] = [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  'fc00::/7',
].map(cidrOf)

/** True for an IP address, given as text, of a private network, or that embeds one. False for other text. */
export function isPrivateAddress(text: string): boolean {
  const address = scanAddress(text)
  if (address === undefined) return false
  return formsOf(address.bytes).some((bytes) => PRIVATE.some((cidr) => isIn(bytes, cidr)))
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
    const address = scanAddress(text)
    if (address === undefined) return 'it is not an IP address'
    const forms = formsOf(address.bytes)
    if (forms.some((bytes) => this.#allowed.some((cidr) => isIn(bytes, cidr)))) return ''
    for (const bytes of forms) {
      const found = REFUSED.find(({ cidr }) => isIn(bytes, cidr))
      if (found !== undefined) return `${text} is not probed: ${found.what}`
    }
    return ''
  }
}

/** Returns an address as written, and the IPv4 address that it embeds. */
function formsOf(written: Uint8Array): readonly Uint8Array[] {
  const embedding = EMBEDDING.find(({ cidr }) => isIn(written, cidr))
  if (embedding === undefined) return [written]
  return [written, written.subarray(embedding.at, embedding.at + 4)]
}

function refuse(text: string, what: string): { cidr: Cidr; what: string } {
  return { cidr: cidrOf(text), what }
}

function cidrOf(text: string): Cidr {
  return scanCidr(text)!
}

function isIn(bytes: Uint8Array, cidr: Cidr): boolean {
  return bytes.length === cidr.bytes.length && isInNetwork(bytes, cidr)
}
