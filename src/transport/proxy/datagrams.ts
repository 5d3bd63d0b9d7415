import type { Query } from '../../dns/message/query.ts'
import { HeaderRead, ProxyHeader } from './header.ts'
import { ProxyAction, ProxyFault, type ProxyRules } from './rules.ts'
import { ProxySessions } from './sessions.ts'

const { Use, Ignore, Reject, Skip } = ProxyAction

/** Removes the PROXY headers of the datagrams of a socket, and finds the clients. Nothing here allocates per packet. */
export class ProxiedDatagrams {
  readonly #server: string
  #rules: ProxyRules
  readonly #header = new ProxyHeader()
  /** Made for the first session. */
  #sessions: ProxySessions | undefined
  readonly #nowMs: (() => number) | undefined
  /** True if the peer of the query that was opened last is the client of a header. */
  isProxied = false

  /** `server`: the address of the plan. `nowMs`: monotonic; for tests. */
  constructor(server: string, rules: ProxyRules, nowMs?: () => number) {
    this.#server = server
    this.#rules = rules
    this.#nowMs = nowMs
  }

  /** Replaces the rules. Sessions are kept if their limits are the same. */
  use(rules: ProxyRules): void {
    const { trackingMs, sessionsMax } = this.#rules
    if (trackingMs !== rules.trackingMs || sessionsMax !== rules.sessionsMax)
      this.#sessions = undefined
    this.#rules = rules
  }

  /**
   * Returns the offset of the message in a datagram at `at` that ends before `end`; -1 = drop it. `query` has its
   * source: if a header or a session names a client, that is the peer from now on. @hot
   */
  open(query: Query, octets: Uint8Array, at: number, end: number): number {
    const rules = this.#rules
    const header = this.#header
    this.isProxied = false
    query.proxyTlvsOctets = 0
    const action = rules.actionFor(query.peerAddress, query.peerFamily)
    if (action === Skip) return at
    const found = header.read(octets, at, end)
    if (found === HeaderRead.None) {
      if (action === Use && this.#sessions !== undefined) this.#find(query, this.#sessions)
      return at
    }
    // A header of version 1 is for connections.
    if (found !== HeaderRead.Whole || header.version === 1) {
      return this.#refuse(query, ProxyFault.Malformed)
    }
    if (action === Reject) return this.#refuse(query, ProxyFault.Rejected)
    const message = at + header.octets
    if (action === Ignore) return message
    if (header.family !== 0) this.#take(query, octets)
    return rules.trackingMs > 0 && message === end ? -1 : message
  }

  #find(query: Query, sessions: ProxySessions): void {
    this.isProxied = sessions.describe(query)
    if (!this.#rules.keepsTlvs) query.proxyTlvsOctets = 0
  }

  #take(query: Query, octets: Uint8Array): void {
    const { trackingMs, sessionsMax, keepsTlvs } = this.#rules
    const header = this.#header
    if (trackingMs > 0) {
      this.#sessions ??= new ProxySessions(trackingMs, sessionsMax, this.#nowMs)
      this.#sessions.store(query, header, octets, keepsTlvs)
    }
    header.describe(query, octets)
    if (!keepsTlvs) query.proxyTlvsOctets = 0
    this.isProxied = true
  }

  #refuse({ peerAddress, peerFamily }: Query, fault: ProxyFault): number {
    this.#rules.noteFault(this.#server, fault, peerAddress, peerFamily)
    return -1
  }
}
