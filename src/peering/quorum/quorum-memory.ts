import type { Clock } from '../../base/clock.ts'
import { FindingAges } from './finding-ages.ts'

/** Addresses that are down, by host without `*.`, or by another id as in QuorumHost. */
export type DownByHost = ReadonlyMap<string, ReadonlySet<string>>

const NONE: ReadonlySet<string> = new Set()

/** What must survive a reload: else a dead site's addresses would be served again for a while. */
export class QuorumMemory {
  /** Monotonic milliseconds. Silence counts from here: before, this process heard no site. */
  readonly startMs: number
  readonly ages = new FindingAges()
  /** Addresses that a quorum found down, of hosts that were settled. */
  readonly #down = new Map<string, ReadonlySet<string>>()
  /** All addresses of peers that are down, whatever decided it, and not served as ours: what the log says. */
  readonly #out = new Map<string, ReadonlySet<string>>()
  readonly #earlier: DownByHost
  /** Those of `#earlier` whose hosts were not settled yet. */
  readonly #unsettled: Map<string, ReadonlySet<string>>
  readonly #listeners = new Set<(id: string) => void>()

  /** `earlier`: decisions of an earlier process. */
  constructor(clock: Pick<Clock, 'monotonic'>, earlier: DownByHost = new Map()) {
    this.startMs = clock.monotonic()
    this.#earlier = earlier
    this.#unsettled = new Map(earlier)
  }

  /** The last decisions about each host that was settled. */
  get down(): DownByHost {
    return this.#down
  }

  downOf(id: string): ReadonlySet<string> {
    return this.#down.get(id) ?? this.#unsettled.get(id) ?? NONE
  }

  /** Returns what was down in an earlier process. */
  earlierOf(id: string): ReadonlySet<string> {
    return this.#earlier.get(id) ?? NONE
  }

  /** Returns the addresses of peers that are down, whatever decided it. */
  outOf(id: string): ReadonlySet<string> {
    return this.#out.get(id) ?? this.downOf(id)
  }

  /** `out`: all that are out of service, also those that their own sites report down. */
  note(id: string, down: ReadonlySet<string>, out: ReadonlySet<string> = down): void {
    if (out.size + down.size === 0) this.#out.delete(id)
    else this.#out.set(id, out)
    const before = this.downOf(id)
    const isSame = before.size === down.size && [...before].every((one) => down.has(one))
    const isFirst = this.#unsettled.delete(id)
    if (down.size === 0) this.#down.delete(id)
    else this.#down.set(id, down)
    if (!isSame || isFirst) for (const listener of this.#listeners) listener(id)
  }

  /** Forgets a host without endpoints of peers. What an earlier process decided is kept: they may still answer. */
  forget(id: string): void {
    this.#out.delete(id)
    if (this.#down.delete(id)) for (const listener of this.#listeners) listener(id)
    this.ages.forget(id)
  }

  /** `listener`: called with each host whose decisions changed. */
  subscribe(listener: (id: string) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}
