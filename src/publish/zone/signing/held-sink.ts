import { printLatin1 } from '../../../base/latin1.ts'
import { DECLARED_NAME } from '../../../zone/image/replacement.ts'
import type { OwnerSet } from '../../build/owner-set.ts'
import type { RRsetSink } from '../../build/record-zone-options.ts'

/**
 * Holds back the changes of a zone while it cannot be signed, so that the signed content stays in force. Of each RRset
 * it holds the last change only.
 */
export class HeldSink implements RRsetSink {
  readonly #to: () => Required<RRsetSink>
  readonly #isHolding: () => boolean
  /** By type and owner. */
  readonly #held = new Map<string, () => void>()

  /** `isHolding`: whether the zone cannot be signed now. */
  constructor(to: () => Required<RRsetSink>, isHolding: () => boolean) {
    this.#to = to
    this.#isHolding = isHolding
  }

  get isEmpty(): boolean {
    return this.#held.size === 0
  }

  put(owner: Uint8Array, set: OwnerSet): void {
    if (this.#isPassing) this.#to().put(owner, set)
    else this.#hold(owner, set.type, () => this.#to().put(owner, set))
  }

  rename(owner: Uint8Array, set: OwnerSet, before: OwnerSet): void {
    if (this.#isPassing) this.#to().rename(owner, set, before)
    // A held change of another version must not be replaced by less.
    else this.#hold(owner, set.type, () => this.#to().put(owner, set))
  }

  remove(owner: Uint8Array, type: number): void {
    if (this.#isPassing) this.#to().remove(owner, type)
    else this.#hold(owner, type, () => this.#to().remove(owner, type))
  }

  declare(owner: Uint8Array, isDeclared: boolean): void {
    if (this.#isPassing) this.#to().declare(owner, isDeclared)
    else this.#hold(owner, DECLARED_NAME, () => this.#to().declare(owner, isDeclared))
  }

  /** Applies the held changes. */
  release(): void {
    for (const apply of this.#held.values()) apply()
    this.#held.clear()
  }

  /** Nothing passes before the held changes are released, so changes of one RRset keep their order. */
  get #isPassing(): boolean {
    return this.#held.size === 0 && !this.#isHolding()
  }

  #hold(owner: Uint8Array, type: number, apply: () => void): void {
    this.#held.set(`${type} ${printLatin1(owner)}`, apply)
  }
}
