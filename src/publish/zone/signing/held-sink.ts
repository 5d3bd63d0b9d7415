import { nameKey } from '../../../dns/name/name.ts'
import { DECLARED_NAME } from '../../../zone/image/replacement.ts'
import { isServed, type OwnerSet } from '../../build/owner-set.ts'
import type { RecordZone } from '../../build/record-zone.ts'
import type { RRsetSink } from '../../build/record-zone-options.ts'

/** Above it, all RRsets are released: a key takes 200 octets. */
const NOTED_MAX = 10_000

/**
 * Holds back the changes of a zone while it cannot be signed, so that the signed content stays in force. It notes which
 * RRsets changed since the last publication; their content is read from the zone's records when it is released.
 */
export class HeldSink implements RRsetSink {
  readonly #to: () => Required<RRsetSink>
  readonly #isHolding: () => boolean
  readonly #notedMax: number
  /** Types of the RRsets that changed since the last publication, by `nameKey` of the owner. */
  readonly #changed = new Map<string, Set<number>>()
  /** Any RRset may have changed, and only those that were removed are noted: so it is until the first publication. */
  #isAll = true
  #isEmpty = true

  /** `isHolding`: whether the zone cannot be signed now. `notedMax`: names that are noted. */
  constructor(to: () => Required<RRsetSink>, isHolding: () => boolean, notedMax = NOTED_MAX) {
    this.#to = to
    this.#isHolding = isHolding
    this.#notedMax = notedMax
  }

  /** False while changes are held back. */
  get isEmpty(): boolean {
    return this.#isEmpty
  }

  put(owner: Uint8Array, set: OwnerSet): void {
    if (this.#pass(owner, set.type)) this.#to().put(owner, set)
  }

  rename(owner: Uint8Array, set: OwnerSet, before: OwnerSet): void {
    if (this.#pass(owner, set.type)) this.#to().rename(owner, set, before)
  }

  remove(owner: Uint8Array, type: number): void {
    this.noteRemoved(owner, type)
    if (this.#pass(owner, type)) this.#to().remove(owner, type)
  }

  declare(owner: Uint8Array, isDeclared: boolean): void {
    if (!isDeclared) this.noteRemoved(owner, DECLARED_NAME)
    if (this.#pass(owner, DECLARED_NAME)) this.#to().declare(owner, isDeclared)
  }

  /** Notes an RRset that was removed although no record had it. */
  noteRemoved(owner: Uint8Array, type: number): void {
    this.#note(owner, type)
  }

  /** Notes that the image was published with all changes that passed. */
  published(): void {
    this.#changed.clear()
    this.#isAll = false
  }

  /** Notes that what passed since the last publication was taken back: it is held now. */
  takenBack(): void {
    this.#isEmpty = false
  }

  /** Applies the held changes; pauses now and then. Meanwhile, the records must not change. */
  *release(records: Pick<RecordZone, 'setsOf'>): Generator<void> {
    if (this.#isAll) yield* this.#putAll(records.setsOf())
    for (const [key, sets] of records.setsOf(this.#changed.keys())) {
      const owner = ownerOf(key)
      const types = this.#changed.get(key)!
      // A CNAME leaves before other types come, and they leave before it comes.
      for (const type of types) this.#removeUnless(sets, owner, type)
      for (const set of sets) if (types.has(set.type) && isServed(set)) this.#to().put(owner, set)
      yield
    }
    this.#isEmpty = true
  }

  *#putAll(owners: Iterable<readonly [key: string, sets: readonly OwnerSet[]]>): Generator<void> {
    for (const [key, sets] of owners) {
      const owner = ownerOf(key)
      if (!sets.every(isServed)) this.#to().declare(owner, true)
      for (const set of sets) if (isServed(set)) this.#to().put(owner, set)
      yield
    }
  }

  #removeUnless(sets: readonly OwnerSet[], owner: Uint8Array, type: number): void {
    if (type === DECLARED_NAME) this.#to().declare(owner, !sets.every(isServed))
    else if (!sets.some((set) => set.type === type && isServed(set))) this.#to().remove(owner, type)
  }

  /** Notes a change. Nothing passes before the held changes are released, so changes of one RRset keep their order. */
  #pass(owner: Uint8Array, type: number): boolean {
    if (!this.#isAll) this.#note(owner, type)
    this.#isAll ||= this.#changed.size > this.#notedMax
    if (this.#isEmpty) this.#isEmpty = !this.#isHolding()
    return this.#isEmpty
  }

  #note(owner: Uint8Array, type: number): void {
    const key = nameKey(owner)
    const types = this.#changed.get(key)
    if (types === undefined) this.#changed.set(key, new Set([type]))
    else types.add(type)
  }
}

function ownerOf(key: string): Uint8Array {
  return Uint8Array.from(Buffer.from(key, 'latin1'))
}
