import type { Clock } from '../base/clock.ts'
import type { HostPort } from '../dns/host-port.ts'
import { type PeerAddress, resolvePeer } from './peer-address.ts'

/** Time until a host name is resolved again although its address answers. */
const RESOLVE_MS = 5 * 60_000

/** The addresses of one peer, which may be configured by name. An address that answers is kept. */
export class PeerServers {
  readonly #peer: PeerAddress
  readonly #clock: Clock
  #servers: readonly HostPort[] = []
  #resolvedMs = Number.NEGATIVE_INFINITY

  constructor(peer: PeerAddress, clock: Clock) {
    this.#peer = peer
    this.#clock = clock
  }

  /** The address to query; undefined = none is known yet. */
  get first(): HostPort | undefined {
    return this.#servers[0]
  }

  has(host: string): boolean {
    return this.#servers.some((server) => server.host === host)
  }

  /** As `first`, after refreshing addresses that are too old. */
  async resolve(): Promise<HostPort | undefined> {
    const nowMs = this.#clock.monotonic()
    if (nowMs - this.#resolvedMs < RESOLVE_MS) return this.first
    const found = await resolvePeer(this.#peer)
    const isSame = (a: HostPort, b: HostPort): boolean => a.host === b.host
    const known = this.#servers.filter((old) => found.some((server) => isSame(old, server)))
    const added = found.filter((server) => !known.some((old) => isSame(old, server)))
    // If the resolver fails, addresses that answered are kept.
    if (found.length > 0) this.#servers = [...known, ...added]
    this.#resolvedMs = nowMs
    return this.first
  }

  /** Moves to the next address, because this one did not answer; the peer may also have moved. */
  pass(server: HostPort): void {
    this.#servers = [...this.#servers.slice(1), server]
    this.#resolvedMs = Number.NEGATIVE_INFINITY
  }
}
