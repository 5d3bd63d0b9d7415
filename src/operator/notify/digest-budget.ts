import type { Clock } from '../../base/clock.ts'
import type { Query } from '../../dns/message/query.ts'
import { TokenBucket } from '../../kube/token-bucket.ts'

/**
 * Digests at once and per second: for one address that has sent a good signature, for one network
 * that has not, and for all of these networks together.
 */
const KNOWN_MAX = 20
const NETWORK_MAX = 20
const UNKNOWN_SENDERS_MAX = 200
/** Addresses with good signatures that are kept. */
const KNOWN_ADDRESSES_MAX = 64
/** Networks share a bucket by chance, and no sender can find out which ones. A power of two. */
const BUCKETS = 256
/** A network in octets: IPv4 /24, IPv6 /48. */
const NETWORK_OCTETS = { v4: 3, v6: 6 }

/**
 * Decides whether a signature may cost a digest. Key names are not secret, so any sender that knows
 * one can cause any number of digests. Each network therefore has its own budget, and an address
 * that has sent a good signature has another one.
 */
export class DigestBudget {
  readonly #clock: Clock
  readonly #seed: number
  /** By address; the latest good signature comes last. */
  readonly #known = new Map<string, TokenBucket>()
  readonly #networks: readonly TokenBucket[]
  readonly #unknownSenders: TokenBucket

  /** `seed`: any 32-bit integer that senders don't know. */
  constructor(clock: Clock, seed: number) {
    this.#clock = clock
    this.#seed = seed
    this.#networks = Array.from({ length: BUCKETS }, () => this.#bucketOf(NETWORK_MAX))
    this.#unknownSenders = this.#bucketOf(UNKNOWN_SENDERS_MAX)
  }

  /** `host`: source address of the query, in canonical form. */
  take(query: Pick<Query, 'peerAddress' | 'peerFamily'>, host: string): boolean {
    const known = this.#known.get(host)
    if (known !== undefined) return known.take()
    const network = this.#networks[this.#placeOf(query)]!
    return network.take() && this.#unknownSenders.take()
  }

  /** Records that this host has sent a good signature. */
  noteGood(host: string): void {
    const bucket = this.#known.get(host) ?? this.#bucketOf(KNOWN_MAX)
    this.#known.delete(host)
    this.#known.set(host, bucket)
    if (this.#known.size <= KNOWN_ADDRESSES_MAX) return
    for (const oldest of this.#known.keys()) {
      this.#known.delete(oldest)
      return
    }
  }

  #bucketOf(most: number): TokenBucket {
    return new TokenBucket(this.#clock, most, 1000 / most)
  }

  #placeOf({ peerAddress, peerFamily }: Pick<Query, 'peerAddress' | 'peerFamily'>): number {
    const octets = peerFamily === 1 ? NETWORK_OCTETS.v4 : NETWORK_OCTETS.v6
    let hash = this.#seed ^ octets
    for (let i = 0; i < octets; i++) {
      hash = Math.imul(hash ^ peerAddress[i]!, 0x9e3779b1)
      hash ^= hash >>> 15
    }
    return hash & (BUCKETS - 1)
  }
}
