import { isDeepStrictEqual } from 'node:util'
import { assert } from '../../base/assert.ts'
import { embeddedIPv4 } from '../../dns/nat64.ts'
import {
  type Address,
  type Cidr,
  isInNetwork,
  scanAddress,
  scanCidr,
} from '../../dns/text/address.ts'
import { AddressSet } from '../../dns/text/address-set.ts'

/** Why an address is never granted. */
export type Denial = 'unspecified' | 'loopback' | 'link-local' | 'multicast' | 'cluster'

/** What a denied address is, for messages. */
export const DENIAL_TEXTS: Readonly<Record<Denial, string>> = {
  unspecified: 'an unspecified address',
  loopback: 'a loopback address',
  'link-local': 'a link-local address',
  multicast: 'a multicast address',
  cluster: 'in a network of the cluster',
}

const PREFIXES: readonly (readonly [Denial, readonly string[]])[] = [
  ['unspecified', ['0.0.0.0/8', '::/128']],
  ['loopback', ['127.0.0.0/8', '::1/128']],
  ['link-local', ['169.254.0.0/16', 'fe80::/10']],
  // With broadcast and the reserved addresses below it.
  ['multicast', ['224.0.0.0/3', 'ff00::/8']],
]

/**
 * Networks whose last four octets are an IPv4 address: of NAT64 (RFC 6052 section 2.1; RFC 8215, with prefixes of
 * 96 bits), and of IPv4-mapped addresses, which a stored status may have (RFC 4291 section 2.5.5.2).
 */
const EMBEDDED = setOf(['64:ff9b::/96', '64:ff9b:1::/48', '::ffff:0:0/96'])

const SETS: readonly (readonly [Denial, AddressSet])[] = PREFIXES.map(([denial, prefixes]) => {
  return [denial, setOf(prefixes)]
})

/** What a policy may not grant, whatever DNS answers: guards against rebinding. */
export class AddressRules {
  readonly #cluster: AddressSet
  readonly #allowed: AddressSet
  /** Prefixes of NAT64, besides those of the RFCs. */
  readonly #nat64: Cidr[] = []

  /**
   * `cluster`: networks of nodes, Pods and Services. `allowed`: networks that are granted although a
   * rule denies them.
   */
  constructor(cluster: readonly Cidr[], allowed: readonly Cidr[]) {
    this.#cluster = new AddressSet(cluster)
    this.#allowed = new AddressSet(allowed)
  }

  /**
   * Returns why an address must not be granted; undefined = it may. An address for NAT64, or an
   * IPv4-mapped one, counts as its IPv4 address too.
   */
  denialOf(text: string): Denial | undefined {
    const address = scanAddress(text)
    assert(address !== undefined, 'facts have valid addresses')
    const { bytes, family } = address
    const denial = this.#denialAt(bytes, 0, family)
    if (denial !== undefined || family === 1) return denial
    if (EMBEDDED.has(bytes, 0, 2)) return this.#denialAt(bytes, 12, 1)
    const prefix = this.#nat64.find((one) => isInNetwork(bytes, one))
    return prefix === undefined ? undefined : this.#denialAt(embeddedIPv4(prefix, bytes), 0, 1)
  }

  /** Adds a prefix of NAT64, of one of the lengths of RFC 6052: its addresses count as IPv4 addresses too. */
  addNat64(prefix: Cidr): void {
    if (!this.#nat64.some((one) => isDeepStrictEqual(one, prefix))) this.#nat64.push(prefix)
  }

  /** True if the address is in a network of the cluster. */
  isInCluster({ bytes, family }: Address): boolean {
    return this.#cluster.has(bytes, 0, family)
  }

  #denialAt(bytes: Uint8Array, offset: number, family: number): Denial | undefined {
    if (this.#allowed.has(bytes, offset, family)) return undefined
    for (const [denial, set] of SETS) if (set.has(bytes, offset, family)) return denial
    return this.#cluster.has(bytes, offset, family) ? 'cluster' : undefined
  }
}

function setOf(prefixes: readonly string[]): AddressSet {
  return new AddressSet(
    prefixes.map((text) => {
      const cidr = scanCidr(text)
      assert(cidr !== undefined, `${text} is a prefix`)
      return cidr
    }),
  )
}
