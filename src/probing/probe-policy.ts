import { type Cidr, isInNetwork, scanAddress, scanCidr } from '../dns/text/address.ts'

/**
 * Networks that nothing is probed in unless the operator says so: whoever may write records could have the server
 * knock where only it can, at itself, at what listens for this machine alone, at a cloud's metadata service.
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

/** Prefixes with an IPv4 address that is what is reached, and its first octet. */
const EMBEDDING: readonly { readonly cidr: Cidr; readonly at: number }[] = [
  // RFC 4291 2.5.5, SIIT (RFC 2765 2.1), and NAT64 (RFC 6052 2.1, and RFC 8215 with 96 bits of prefix).
  ...['::ffff:0:0/96', '::/96', '::ffff:0:0:0/96', '64:ff9b::/96', '64:ff9b:1::/48'].map((text) => {
    return { cidr: cidrOf(text), at: 12 }
  }),
  // 6to4 (RFC 3056 section 2).
  { cidr: cidrOf('2002::/16'), at: 2 },
]

/** Which addresses may be probed. */
export class ProbePolicy {
  readonly #allowed: readonly Cidr[]

  /** `allowed`: networks to probe in although they are refused by default. */
  constructor(allowed: readonly Cidr[] = []) {
    this.#allowed = allowed
  }

  /** Why an address, as text, is not probed; '' = it may be. */
  refusal(text: string): string {
    const address = scanAddress(text)
    if (address === undefined) return 'it is no IP address'
    // Both as it is written and as it is reached.
    const { bytes: written } = address
    const embedding = EMBEDDING.find(({ cidr }) => isIn(written, cidr))
    const forms = [written]
    if (embedding !== undefined) forms.push(written.subarray(embedding.at, embedding.at + 4))
    if (forms.some((bytes) => this.#allowed.some((cidr) => isIn(bytes, cidr)))) return ''
    for (const bytes of forms) {
      const found = REFUSED.find(({ cidr }) => isIn(bytes, cidr))
      if (found !== undefined) return `${text} is not probed: ${found.what}`
    }
    return ''
  }
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
