import { nameKey } from '../../dns/name/name.ts'
import { ALL_ADDRESSES } from '../../dns/text/address-set.ts'
import { type TsigKey, TsigKeyring } from '../../dns/tsig/key.ts'
import { type ApiObject, textOf } from '../../kube/api.ts'
import type { Informer } from '../../kube/informer.ts'
import { keyIdOf } from '../provider/key-id.ts'
import { COREDNS_SECRET_TYPE, readProvider } from '../provider/provider-secret.ts'

/** A key of some provider Secret. */
export interface ProviderKey {
  readonly id: string
  readonly name: string
  /** Contains this key alone: other Secrets may have keys of the same name. */
  readonly keyring: TsigKeyring
}

/** Keys of one name that are tried; each costs a digest. */
const SAME_NAME_MAX = 4

/** The keys of all provider Secrets of the cluster. Every replica has them. */
export class KeyIndex {
  /** By Secret. */
  readonly #keys = new Map<string, ProviderKey>()

  constructor(secrets: Pick<Informer, 'subscribe'>) {
    secrets.subscribe({
      onAdd: (secret, object) => this.#note(secret, object),
      onUpdate: (secret, object) => this.#note(secret, object),
      onDelete: (secret) => this.#keys.delete(secret),
    })
  }

  /** Each key once. `name`: wire form, in any case. */
  named(name: Uint8Array): readonly ProviderKey[] {
    const text = nameKey(name)
    const found = new Map<string, ProviderKey>()
    for (const key of this.#keys.values()) {
      if (key.name === text && found.size < SAME_NAME_MAX) found.set(key.id, key)
    }
    return [...found.values()]
  }

  #note(secret: string, object: ApiObject): void {
    const isOurs = textOf(object, 'type') === COREDNS_SECRET_TYPE
    const provider = isOurs ? readProvider(object, ALL_ADDRESSES) : ''
    const key = typeof provider === 'string' ? undefined : provider.tsigKey
    if (key === undefined) this.#keys.delete(secret)
    else this.#keys.set(secret, providerKeyOf(key))
  }
}

function providerKeyOf(key: TsigKey): ProviderKey {
  const keyring = new TsigKeyring()
  keyring.replace([key])
  return { id: keyIdOf(key), name: nameKey(key.name), keyring }
}
