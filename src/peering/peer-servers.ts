import type { Clock } from '../base/clock.ts'
import type { Endpoint } from '../dns/endpoint.ts'
import { type PeerAddress, resolvePeer } from './peer-address.ts'

/** Until a host name is resolved again though its address answers. */
const RESOLVE_MS = 5 * 60_000

/** Where one peer is: all its addresses, the one to ask first. */
export class PeerServers {
  readonly #peer: PeerAddress
  readonly #clock: Clock
  #servers: readonly Endpoint[] = []
  #resolvedMs = Number.NEGATIVE_INFINITY

  constructor(peer: PeerAddress, clock: Clock) {
    this.#peer = peer
    this.#clock = clock
  }

  /** The address to ask, so far as it is known; undefined = there is none. */
  get first(): Endpoint | undefined {
    return this.#servers[0]
  }

  /** True if it is at that address. */
  has(host: string): boolean {
    return this.#servers.some((server) => server.host === host)
  }

  /** The address to ask; one that answers stays. */
  async resolve(): Promise<Endpoint | undefined> {
    const nowMs = this.#clock.monotonic()
    if (nowMs - this.#resolvedMs < RESOLVE_MS) return this.first
    const found = await resolvePeer(this.#peer)
    const isSame = (a: Endpoint, b: Endpoint): boolean => a.host === b.host
    const known = this.#servers.filter((old) => found.some((server) => isSame(old, server)))
    const added = found.filter((server) => !known.some((old) => isSame(old, server)))
    // A resolver that fails takes no address away that answered.
    if (found.length > 0) this.#servers = [...known, ...added]
    this.#resolvedMs = nowMs
    return this.first
  }

  /** The first does not answer: perhaps another of its addresses does, and perhaps it has moved. */
  passOver(): void {
    this.#servers = [...this.#servers.slice(1), ...this.#servers.slice(0, 1)]
    this.#resolvedMs = Number.NEGATIVE_INFINITY
  }
}
