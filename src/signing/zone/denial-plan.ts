import { sortInSlices } from '../../base/sort.ts'
import { compareKeys, placeAfter } from './canonical-key.ts'
import type { SetData } from './set-answers.ts'
import type { ChainView, ZoneView } from './zone-view.ts'

/** Which owners' proofs of absence may change, and to what. */
export interface DenialPlan {
  /** NSEC or NSEC3; 0 = the zone has no proofs. */
  readonly type: number
  /** Keys of the owners, sorted, each once. */
  readonly keys: readonly string[]
  /** Returns the RRset of an owner of `keys`; undefined = it has none. */
  denialOf(view: ZoneView, key: string): SetData | undefined
}

/** The owners of a chain after some have joined it and others have left it. */
export class EditedChain {
  readonly #base: ChainView
  readonly #joined: readonly string[]
  readonly #left: ReadonlySet<string>

  /** `joined`: not in the base. `left`: in it. */
  constructor(base: ChainView, joined: Iterable<string>, left: ReadonlySet<string>) {
    this.#base = base
    this.#joined = [...joined].sort(compareKeys)
    this.#left = left
  }

  /** Returns the owner after `key`, which need not be in the chain; after the last comes the first. */
  next(key: string): string {
    return this.#after(key) ?? this.#first()
  }

  /** Returns the owner before `key`; before the first comes the last. Undefined = the chain is empty. */
  previous(key: string): string | undefined {
    return this.#before(key) ?? this.#before(LAST)
  }

  #first(): string {
    const first = this.#joined[0]
    const base = this.#skipLeft(0)
    if (base === undefined) return first ?? ''
    return first === undefined || compareKeys(base, first) < 0 ? base : first
  }

  #after(key: string): string | undefined {
    const base = this.#skipLeft(placeAfter(this.#base.count, this.#base.keyAt, key))
    const joined = this.#joined[placeAfter(this.#joined.length, (i) => this.#joined[i]!, key)]
    if (base === undefined || joined === undefined) return base ?? joined
    return compareKeys(base, joined) < 0 ? base : joined
  }

  #skipLeft(from: number): string | undefined {
    for (let i = from; i < this.#base.count; i++) {
      const key = this.#base.keyAt(i)
      if (!this.#left.has(key)) return key
    }
    return undefined
  }

  #before(key: string): string | undefined {
    const joinedAt = placeAfter(this.#joined.length, (i) => this.#joined[i]!, key) - 1
    const own = this.#joined[joinedAt] === key ? joinedAt - 1 : joinedAt
    const joined = this.#joined[own]
    let at = placeAfter(this.#base.count, this.#base.keyAt, key) - 1
    for (; at >= 0; at--) {
      const base = this.#base.keyAt(at)
      if (base === key || this.#left.has(base)) continue
      return joined === undefined || base > joined ? base : joined
    }
    return joined
  }
}

/** After every key: octets are the characters up to U+0100. */
const LAST = '\uffff'

/** True if an owner is in the chain. */
export function isInChain(chain: ChainView, key: string): boolean {
  const at = placeAfter(chain.count, chain.keyAt, key) - 1
  return at >= 0 && chain.keyAt(at) === key
}

/** Returns the keys sorted, each once. */
export function sortedKeys(keys: Iterable<string>): string[] {
  return [...new Set(keys)].sort(compareKeys)
}

/** Sorts keys with pauses. */
export function* sortKeys(keys: readonly string[]): Generator<void, string[]> {
  const order = Uint32Array.from(keys.keys())
  yield* sortInSlices(order, (a, b) => compareKeys(keys[a]!, keys[b]!))
  return Array.from(order, (index) => keys[index]!)
}
