import { createSecretKey, type KeyObject } from 'node:crypto'
import { type LazyKey, lazyKey } from '../../base/shared-values.ts'
import { lowerName, nameKey, printName } from '../name/name.ts'
import type { TsigAlgorithm } from './algorithm.ts'

/** A key that two servers share (RFC 8945 section 4.2). Printing the object does not reveal the secret. */
export interface TsigKey {
  /** Lower-case wire form. */
  readonly name: Uint8Array
  /** With the final dot, for logs. */
  readonly nameText: string
  /** The algorithm for requests of this server; a reply is signed with the algorithm of its request. */
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

  /** Replaces all keys. */
  replace(keys: readonly TsigKey[]): void {
    this.#keys = new Map(keys.map((key) => [nameKey(key.name), key]))
  }

  /** `name`: wire form, any case. */
  find(name: Uint8Array): TsigKey | undefined {
    return this.#keys.get(nameKey(name))
  }
}

/** Keys of a server block that verify requests, and that we may sign with. `tsig` fills it at its start. */
export const TSIG_KEYS: LazyKey<TsigKeyring> = lazyKey('TSIG keys', () => new TsigKeyring())
