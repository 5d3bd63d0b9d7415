import { InputError } from '../../../src/base/errors.ts'
import { generatePrivateKey, signingKey } from '../../../src/dns/dnssec/dnskey.ts'
import { nameKey } from '../../../src/dns/name/name.ts'
import { keyId } from '../../../src/signing/keys/key-name.ts'
import type { KeyStore, LoadedKeys, StoredKey } from '../../../src/signing/keys/key-store.ts'

/** A key store in memory, for several servers. */
export class MemoryKeyStore implements KeyStore {
  readonly keys = new Map<string, StoredKey>()
  readonly removed: string[] = []
  readonly states = new Map<string, string>()
  /** Why changes fail; '' = they do not. */
  fault = ''
  /** True = it can't be read at all. */
  isAway = false
  /** Why some keys can't be read. */
  faults: InputError[] = []
  readonly #listeners = new Set<() => void>()

  async load(): Promise<LoadedKeys> {
    if (this.isAway) throw new InputError(undefined, 'the store is away')
    return { keys: [...this.keys.values()], faults: this.faults }
  }

  async create(zone: Uint8Array, algorithm: number, flags: number): Promise<StoredKey> {
    this.#check()
    const { tag, dnskey, privateKey } = signingKey(
      await generatePrivateKey(algorithm),
      algorithm,
      flags,
    )
    const key = { id: keyId(zone, algorithm, tag), zone, flags, algorithm, tag, dnskey, privateKey }
    this.keys.set(key.id, key)
    return key
  }

  async readState(zone: Uint8Array): Promise<string | undefined> {
    return this.states.get(nameKey(zone))
  }

  async editState(
    zone: Uint8Array,
    edit: (text: string | undefined) => string | undefined,
  ): Promise<void> {
    this.#check()
    const text = edit(this.states.get(nameKey(zone)))
    if (text !== undefined) this.states.set(nameKey(zone), text)
  }

  async retire(id: string): Promise<void> {
    this.#check()
    if (!this.keys.delete(id)) throw new InputError(undefined, `${id} does not exist`)
    this.removed.push(id)
  }

  watch(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** As after a change of another process. */
  notify(): void {
    for (const listener of this.#listeners) listener()
  }

  #check(): void {
    if (this.fault !== '') throw new InputError(undefined, this.fault)
  }
}
