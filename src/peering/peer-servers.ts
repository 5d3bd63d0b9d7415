import type { Clock } from '../base/clock.ts'
import type { HostPort } from '../dns/host-port.ts'
import { type PeerAddress, resolvePeer } from './peer-address.ts'

/** Until a host name is resolved again though its address answers. */
const RESOLVE_MS = 5 * 60_000

/** The addresses of one peer, which may be given by name. One that answers stays the one to ask. */
export class PeerServers {
  readonly #peer: PeerAddress
  readonly #clock: Clock
  #servers: readonly HostPort[] = []
  #resolvedMs = Number.NEGATIVE_INFINITY

  constructor(peer: PeerAddress, clock: Clock) {
    this.#peer = peer
    this.#clock = clock
  }

  /** The one to ask; undefined = none is known, or not yet. */
  get first(): HostPort | undefined {
    return this.#servers[0]
  }

  has(host: string): boolean {
    return this.#servers.some((server) => server.host === host)
  }

  /** As `first`, of addresses that are not too old. */
  async resolve(): Promise<HostPort | undefined> {
    const nowMs = this.#clock.monotonic()
    if (nowMs - this.#resolvedMs < RESOLVE_MS) return this.first
    const found = await resolvePeer(this.#peer)
    const isSame = (a: HostPort, b: HostPort): boolean => a.host === b.host
    const known = this.#servers.filter((old) => found.some((server) => isSame(old, server)))
    const added = found.filter((server) => !known.some((old) => isSame(old, server)))
    // A resolver that fails takes no address away that answered.
    if (found.length > 0) this.#servers = [...known, ...added]
    this.#resolvedMs = nowMs
    return this.first
  }

  /** It did not answer: perhaps another of the addresses does, and perhaps the peer has moved. */
  pass(server: HostPort): void {
    this.#servers = [...this.#servers.slice(1), server]
    this.#resolvedMs = Number.NEGATIVE_INFINITY
  }
}
