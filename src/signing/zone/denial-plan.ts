import { sortInSlices } from '../../base/sort.ts'
import { compareKeys, placeAfter } from './canonical-key.ts'
import type { OwnerChain } from './owner-chain.ts'
import type { SetData } from './set-answers.ts'
import type { ZoneView } from './zone-view.ts'

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
  readonly #base: OwnerChain
  readonly #joined: readonly string[]
  readonly #left: ReadonlySet<string>
  /** By owner that left: the last one before it that stays. So no search passes it twice. */
  readonly #staysBefore = new Map<string, string | undefined>()

  /** `joined`: not in the base. `left`: in it. */
  constructor(base: OwnerChain, joined: Iterable<string>, left: ReadonlySet<string>) {
    this.#base = base
    this.#joined = [...joined].sort(compareKeys)
    this.#left = left
  }

  /** Returns the owner after `key`, which need not be in the chain; after the last comes the first. */
  next(key: string): string {
    return this.#after(key) ?? this.#first() ?? ''
  }

  /** Returns the owner before `key`; before the first comes the last. Undefined = the chain is empty. */
  previous(key: string): string | undefined {
    return this.#before(key) ?? this.#last()
  }

  #first(): string | undefined {
    return least(this.#skipLeft(this.#base.first()), this.#joined[0])
  }

  #after(key: string): string | undefined {
    this.#base.seek(key)
    return least(this.#skipLeft(this.#base.next()), this.#joined[this.#placeAfter(key)])
  }

  #before(key: string): string | undefined {
    const base = this.#base.seek(key) ? this.#base.previous() : this.#base.key
    const at = this.#placeAfter(key) - 1
    const joined = this.#joined[this.#joined[at] === key ? at - 1 : at]
    return greatest(this.#skipLeftBack(base), joined)
  }

  #last(): string | undefined {
    return greatest(this.#skipLeftBack(this.#base.last()), this.#joined.at(-1))
  }

  #placeAfter(key: string): number {
    return placeAfter(this.#joined.length, (i) => this.#joined[i]!, key)
  }

  /** `from`: the owner at the place in the base. */
  #skipLeft(from: string | undefined): string | undefined {
    let key = from
    while (key !== undefined && this.#left.has(key)) key = this.#base.next()
    return key
  }

  #skipLeftBack(from: string | undefined): string | undefined {
    const passed: string[] = []
    let key = from
    while (key !== undefined && this.#left.has(key)) {
      if (this.#staysBefore.has(key)) {
        key = this.#staysBefore.get(key)
        break
      }
      passed.push(key)
      key = this.#base.previous()
    }
    for (const one of passed) this.#staysBefore.set(one, key)
    return key
  }
}

function least(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return compareKeys(a, b) < 0 ? a : b
}

function greatest(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return compareKeys(a, b) > 0 ? a : b
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

/** Keys between two pauses. */
const SLICE_KEYS = 4096

/** Merges sorted keys with pauses; each is in the result once. */
export function* mergeKeys(
  some: readonly string[],
  others: readonly string[],
): Generator<void, string[]> {
  const merged: string[] = []
  for (let i = 0, k = 0; i < some.length || k < others.length; ) {
    const isNext = k === others.length || (i < some.length && some[i]! <= others[k]!)
    const key = isNext ? some[i++]! : others[k++]!
    if (key !== merged.at(-1)) merged.push(key)
    if ((i + k) % SLICE_KEYS === 0) yield
  }
  return merged
}
