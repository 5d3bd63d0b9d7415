import { CanonicalOrder } from '../../zone/image/canonical-order.ts'
import { ChainCursor } from '../../zone/image/chain-cursor.ts'
import * as L from '../../zone/image/layout.ts'
import type { ZoneReader } from '../../zone/image/reader.ts'
import { keyOwner, ownerKey } from './canonical-key.ts'

const NO_APEX = new Uint8Array(0)

/** Returns the key of a node's name. */
export function nodeKey({ bytes, words }: ZoneReader, node: number): string {
  const at = (node + L.NODE_NAME) * 4
  const octets = words[node + L.NODE_KEY]! & 0xffff
  return ownerKey(bytes.subarray(at, at + octets), 0)
}

/** The sorted owners of the records that prove absence, as keys, and a place among them. */
export class OwnerChain {
  readonly #reader: ZoneReader
  readonly #cursor = new ChainCursor()
  readonly #order = new CanonicalOrder()
  readonly #chain: number

  /** `chain`: 0 = an empty one. */
  constructor(reader: ZoneReader, chain: number) {
    this.#reader = reader
    this.#chain = chain
    this.#cursor.enter(reader.words, chain)
  }

  get isEmpty(): boolean {
    return this.#chain === 0
  }

  /** Moves to the last owner that is not after `key`, or before all owners. True = it is `key`. */
  seek(key: string): boolean {
    const name = keyOwner(key, NO_APEX)
    this.#order.setRelative(name, 0, name.length)
    return this.#cursor.seek(this.#reader.words, this.#reader.bytes, this.#order)
  }

  /** Returns the owner at the place; undefined = it is before all owners. */
  get key(): string | undefined {
    return this.#keyOf(this.#cursor.node(this.#reader.words))
  }

  /** Moves to the first owner and returns it; undefined = the chain is empty. */
  first(): string | undefined {
    this.#cursor.enter(this.#reader.words, this.#chain)
    return this.next()
  }

  /** Moves to the last owner and returns it; undefined = the chain is empty. */
  last(): string | undefined {
    return this.#keyOf(this.#cursor.last(this.#reader.words))
  }

  /** Moves to the next owner and returns it; undefined = the place is that of the last one. */
  next(): string | undefined {
    return this.#keyOf(this.#cursor.next(this.#reader.words))
  }

  /** Moves to the owner before and returns it; undefined = now, the place is before all owners. */
  previous(): string | undefined {
    return this.#keyOf(this.#cursor.previous(this.#reader.words))
  }

  #keyOf(node: number): string | undefined {
    return node === 0 ? undefined : nodeKey(this.#reader, node)
  }
}
