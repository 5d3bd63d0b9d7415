import { printType } from '../../dns/iana/types.ts'
import { printName } from '../../dns/name/name.ts'
import { type DownSet, printOut } from './all-down.ts'
import type { OwnerSet } from './owner-set.ts'

export interface OutSetsOptions {
  /** Called when a set gets out of service or its state changes; `isOver`: when it is back. */
  readonly onOut: (set: DownSet, isOver: boolean) => void
}

/** What a zone has out of service: drained endpoints, and sets and failover lists without an endpoint in service. */
export class OutSets {
  readonly #options: OutSetsOptions
  /** By owner: number of drained endpoints. */
  readonly #drained = new Map<string, number>()
  /** By owner. */
  readonly #sets = new Map<string, readonly DownSet[]>()

  constructor(options: OutSetsOptions) {
    this.#options = options
  }

  /** The sets whose endpoints are all down or drained. */
  get allDown(): DownSet[] {
    return this.#all().filter(({ lists }) => lists === undefined)
  }

  /** Sets that have a failover list whose endpoints are all down or drained. */
  get exhausted(): DownSet[] {
    return this.#all().filter(({ lists }) => lists !== undefined)
  }

  /** Number of endpoints that are not served because a drain selects all their targets. */
  get drainedCount(): number {
    let count = 0
    for (const drained of this.#drained.values()) count += drained
    return count
  }

  /**
   * Notes the sets of an owner. `isReached`: false if a CNAME of the same record leads to it. Such a
   * CNAME is out of service with the set, so clients do not get there. They do if only failover lists
   * are exhausted.
   */
  note(key: string, owner: Uint8Array, sets: readonly OwnerSet[], isReached: () => boolean): void {
    const drained = sets.reduce((sum, { drainedCount }) => sum + drainedCount, 0)
    if (drained > 0) this.#drained.set(key, drained)
    else if (this.#drained.size > 0) this.#drained.delete(key)
    const before = this.#sets.get(key) ?? []
    const out = sets.flatMap((set) => describe(owner, set) ?? [])
    if (out.length === 0 && before.length === 0) return
    const isHidden = out.some(({ lists }) => lists === undefined) && !isReached()
    const now = isHidden ? out.filter(({ lists }) => lists !== undefined) : out
    if (now.length === 0) this.#sets.delete(key)
    else this.#sets.set(key, now)
    const { onOut } = this.#options
    for (const one of now) if (!before.some((other) => isSameState(one, other))) onOut(one, false)
    for (const one of before) if (!now.some(({ set }) => set === one.set)) onOut(one, true)
  }

  #all(): DownSet[] {
    return [...this.#sets.values()].flat()
  }
}

function describe(owner: Uint8Array, { type, allDown, exhausted }: OwnerSet): DownSet | undefined {
  if (allDown === undefined && exhausted === undefined) return undefined
  const set = `${printName(owner)} ${printType(type)}`
  if (allDown !== undefined) return { set, allDown }
  return { set, ...exhausted! }
}

function isSameState(one: DownSet, other: DownSet): boolean {
  return one.set === other.set && printOut(one) === printOut(other)
}
