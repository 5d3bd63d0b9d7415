import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/telemetry/log.ts'

/** Maximum of hosts of one peer whose refused endpoints are stored. */
const HOSTS_MAX = 2000
/** Maximum of different lines that are stored so as to log each only once. */
const TEXTS_MAX = 2000
/** Maximum of lines per peer that are logged within WINDOW_MS. */
const LINES_MAX = 10
const WINDOW_MS = 60_000

/**
 * The refused data of one peer, by host. Each line is logged once. If a minute has too many lines,
 * some are logged with a count of the others. So a peer can fill neither the log nor the memory.
 */
export class Refusals {
  readonly #parts: { readonly peer: string; readonly log: Logger; readonly clock: Clock }
  readonly #problems = new Map<string, readonly string[]>()
  readonly #exported = new Set<string>()
  #count = 0
  #windowMs = Number.NEGATIVE_INFINITY
  #lines = 0
  #unlogged = 0

  /** `peer`: its name in the log. */
  constructor(parts: { readonly peer: string; readonly log: Logger; readonly clock: Clock }) {
    this.#parts = parts
  }

  /**
   * Problems of all hosts, as last read. If there are very many hosts, only the first ones count.
   */
  get count(): number {
    return this.#count
  }

  of(host: string): readonly string[] {
    return this.#problems.get(host) ?? []
  }

  /** Stores the problems of a host that was read; they quote the peer's text. */
  note(host: string, problems: readonly string[]): void {
    const known = this.#problems.get(host)
    if (known === undefined && problems.length === 0) return
    this.#count -= known?.length ?? 0
    this.#problems.delete(host)
    if (problems.length > 0 && this.#problems.size < HOSTS_MAX) {
      this.#problems.set(host, problems)
      this.#count += problems.length
    }
    for (const text of problems) this.#report(text)
  }

  clear(): void {
    this.#problems.clear()
    this.#count = 0
  }

  #report(text: string): void {
    if (this.#exported.has(text)) return
    // A peer that constantly sends new invalid data may get a log line again at times.
    if (this.#exported.size >= TEXTS_MAX) this.#exported.clear()
    this.#exported.add(text)
    const { peer, log, clock } = this.#parts
    const nowMs = clock.monotonic()
    if (nowMs - this.#windowMs >= WINDOW_MS) {
      if (this.#unlogged > 0)
        log.warning(`peer ${peer}: ${this.#unlogged} more refusals`, 'peer-refusals-more')
      this.#windowMs = nowMs
      this.#lines = 0
      this.#unlogged = 0
    }
    if (this.#lines++ < LINES_MAX) log.warning(`peer ${peer}: refused: ${text}`, 'peer-refused')
    else this.#unlogged++
  }
}
