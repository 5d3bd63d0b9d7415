import type { AddressPair } from '../enforcer.ts'
import type { ElementStore } from './element-store.ts'

/** Removes what an earlier process allowed to pairs that this one has set otherwise, once both are known. */
export class Adoption {
  readonly #store: ElementStore
  /** Pairs that this process has set; undefined = it is over. */
  #declared: Set<string> | undefined = new Set()

  constructor(store: ElementStore) {
    this.#store = store
  }

  get isOver(): boolean {
    return this.#declared === undefined
  }

  note(pair: AddressPair): void {
    this.#declared?.add(keyOf(pair))
  }

  /** Call it when the elements of the kernel are known. */
  finish(): void {
    const declared = this.#declared
    if (!this.#store.isExact || declared === undefined) return
    this.#declared = undefined
    for (const element of [...this.#store.all()]) {
      const isReplaced = element.origin === 'adopted' && declared.has(keyOf(element.pair))
      if (isReplaced) this.#store.remove(element)
    }
  }
}

function keyOf({ client, address }: AddressPair): string {
  return `${client} ${address}`
}
