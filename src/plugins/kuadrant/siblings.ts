import type { CorefileView } from '../../plugin/directive.ts'
import type { KuadrantOptions } from './options.ts'

/** A `kuadrant` block as the others of its Corefile see it. */
export interface Sibling {
  readonly options: KuadrantOptions
  /** Gets at the records and claims the zones of the block. */
  readonly claim: () => Promise<void>
}

/**
 * The `kuadrant` blocks of one Corefile. All claim their zones before the first is filled: a record
 * must not be in one zone for the moment until a longer one comes, and count as a change there.
 */
export class Siblings {
  readonly #members: Sibling[] = []
  #claimed: Promise<void> | undefined

  static of(corefile: CorefileView): Siblings {
    const known = siblings.get(corefile) ?? new Siblings()
    siblings.set(corefile, known)
    return known
  }

  add(member: Sibling): void {
    this.#members.push(member)
  }

  get options(): readonly KuadrantOptions[] {
    return this.#members.map((member) => member.options)
  }

  /** Resolves once all have claimed; rejects with what stopped the first that could not. */
  claimAll(): Promise<void> {
    this.#claimed ??= this.#claimInTurn()
    return this.#claimed
  }

  async #claimInTurn(): Promise<void> {
    for (const member of this.#members) await member.claim()
  }
}

/** Blocks meet through the Corefile that they are in, which goes with them. */
const siblings = new WeakMap<CorefileView, Siblings>()
