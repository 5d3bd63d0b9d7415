import type { Random } from '../../base/random.ts'
import type { HostPort } from '../../dns/host-port.ts'

/** Consecutive queries without a reply after which a server counts as silent. */
const SILENCES = 3
/** Time after which one query tries a silent server again. */
const RETRY_MS = 10_000

interface ServerState {
  silences: number
  retryMs: number
}

/**
 * Chooses the servers to ask. Leaves out servers that have not replied lately, so that one dead
 * server does not hold up each name until the timeout. If all are silent, all count.
 */
export class ServerChoice {
  readonly #states = new Map<string, ServerState>()
  readonly #random: Random

  constructor(random: Random) {
    this.#random = random
  }

  /** Returns up to `most` of the servers, at random. `nowMs`: monotonic. */
  choose(servers: readonly HostPort[], most: number, nowMs: number): readonly HostPort[] {
    this.#forget(servers)
    const heard = servers.filter((server) => this.#mayAsk(server, nowMs))
    const chosen = heard.length > 0 ? heard : [...servers]
    const count = Math.min(most, chosen.length)
    // The first `count` steps of a Fisher-Yates shuffle.
    for (let i = 0; i < count && count < chosen.length; i++) {
      const other = i + this.#random.below(chosen.length - i)
      const server = chosen[i]!
      chosen[i] = chosen[other]!
      chosen[other] = server
    }
    return chosen.slice(0, count)
  }

  /** Notes whether a server replied. */
  note(server: HostPort, hasReplied: boolean, nowMs: number): void {
    const key = keyOf(server)
    if (hasReplied) {
      this.#states.delete(key)
      return
    }
    const silences = (this.#states.get(key)?.silences ?? 0) + 1
    this.#states.set(key, { silences, retryMs: nowMs + RETRY_MS })
  }

  #mayAsk(server: HostPort, nowMs: number): boolean {
    const state = this.#states.get(keyOf(server))
    if (state === undefined || state.silences < SILENCES) return true
    if (nowMs < state.retryMs) return false
    state.retryMs = nowMs + RETRY_MS
    return true
  }

  /** Drops the states of servers that no longer exist. */
  #forget(servers: readonly HostPort[]): void {
    if (this.#states.size <= servers.length) return
    const keys = new Set(servers.map(keyOf))
    for (const key of this.#states.keys()) if (!keys.has(key)) this.#states.delete(key)
  }
}

function keyOf({ host, port }: HostPort): string {
  return `${host} ${port}`
}
