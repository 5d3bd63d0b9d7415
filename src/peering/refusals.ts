import type { Clock } from '../base/clock.ts'
import type { Logger } from '../telemetry/log.ts'

/** Hosts of one peer whose refused endpoints are remembered. */
const HOSTS_MAX = 2000
/** Different lines that are told once. */
const TEXTS_MAX = 2000
/** Lines that are logged within WINDOW_MS, for one peer. */
export const LINES_MAX = 10
export const WINDOW_MS = 60_000

/**
 * What one peer tells and is refused, by host. Each line is logged once, some of them within a minute and how many more
 * there were: a peer can fill neither the log nor the memory with them.
 */
export class Refusals {
  readonly #parts: { readonly peer: string; readonly log: Logger; readonly clock: Clock }
  readonly #problems = new Map<string, readonly string[]>()
  readonly #exported = new Set<string>()
  #count = 0
  #windowMs = Number.NEGATIVE_INFINITY
  #lines = 0
  #unlogged = 0

  /** `peer`: what it is called in the log. */
  constructor(parts: { readonly peer: string; readonly log: Logger; readonly clock: Clock }) {
    this.#parts = parts
  }

  /** Problems of all hosts, as last read; of very many hosts those of the first. */
  get count(): number {
    return this.#count
  }

  of(host: string): readonly string[] {
    return this.#problems.get(host) ?? []
  }

  /** The host was read, and these are its problems: text of the peer in them is quoted. */
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
    // A peer that has something new to be refused all the time is worth a line again now and then.
    if (this.#exported.size >= TEXTS_MAX) this.#exported.clear()
    this.#exported.add(text)
    const { peer, log, clock } = this.#parts
    const nowMs = clock.monotonic()
    if (nowMs - this.#windowMs >= WINDOW_MS) {
      if (this.#unlogged > 0) log.warning(`peer ${peer}: and ${this.#unlogged} more are refused`)
      this.#windowMs = nowMs
      this.#lines = 0
      this.#unlogged = 0
    }
    if (this.#lines++ < LINES_MAX) log.warning(`peer ${peer}: refused: ${text}`)
    else this.#unlogged++
  }
}
