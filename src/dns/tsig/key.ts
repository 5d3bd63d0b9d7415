import { createSecretKey, type KeyObject } from 'node:crypto'
import { lowerName, nameKey, printName } from '../name/name.ts'
import type { TsigAlgorithm } from './algorithm.ts'

/** What two servers share (RFC 8945 section 4.2). Its secret is not to be had out of it by printing it. */
export interface TsigKey {
  /** Lower-case wire form. */
  readonly name: Uint8Array
  /** With the final dot, for logs. */
  readonly nameText: string
  /** What we sign with on our own account; replies are signed as their requests were. */
  readonly algorithm: TsigAlgorithm
  readonly secret: KeyObject
}

/** `secret`: at least one octet. */
export function createTsigKey(
  name: Uint8Array,
  algorithm: TsigAlgorithm,
  secret: Uint8Array,
): TsigKey {
  const lower = lowerName(name)
  const text = printName(lower)
  return { name: lower, nameText: text, algorithm, secret: createSecretKey(secret) }
}

/** Keys by name. */
export class TsigKeyring {
  #keys: ReadonlyMap<string, TsigKey> = new Map()

  /** Puts other keys in place of all there were. */
  replace(keys: readonly TsigKey[]): void {
    this.#keys = new Map(keys.map((key) => [nameKey(key.name), key]))
  }

  /** `name`: wire form, any case. */
  find(name: Uint8Array): TsigKey | undefined {
    return this.#keys.get(nameKey(name))
  }

  get size(): number {
    return this.#keys.size
  }
}
