import type { Cidr } from '../../dns/text/address.ts'
import { type ApiObject, textOf } from '../../kube/api.ts'
import type { Informer } from '../../kube/informer.ts'
import { labelOf, mappingOf, metadataOf } from '../record/fields.ts'
import { DEFAULT_PROVIDER_LABEL } from '../record/labels.ts'
import type { ProviderSecrets } from './provider-choice.ts'
import { COREDNS_SECRET_TYPE } from './provider-secret.ts'

/** The keys of a provider Secret. */
const KEYS = ['ZONES', 'NAMESERVERS', 'PEERS_ALLOW', 'TSIG_NAME', 'TSIG_ALGORITHM', 'TSIG_SECRET']

/** The Secrets of the cluster that may be providers. */
export class SecretCache {
  readonly #informer: Informer
  readonly #allowed: readonly Cidr[] | undefined
  /** Keys of default providers by namespace. */
  readonly #defaults = new Map<string, Set<string>>()

  /** `allowed`: as in `ProviderSecrets`. */
  constructor(informer: Informer, allowed?: readonly Cidr[]) {
    this.#informer = informer
    this.#allowed = allowed
    informer.subscribe({
      onAdd: (key, object) => this.#note(key, object),
      onUpdate: (key, object) => this.#note(key, object),
      onDelete: (key, before) => this.#drop(key, before),
    })
  }

  of(namespace: string): ProviderSecrets {
    return {
      allowed: this.#allowed,
      find: (name) => this.#informer.get(`${namespace}/${name}`),
      defaults: () =>
        [...(this.#defaults.get(namespace) ?? [])]
          .map((key) => this.#informer.get(key))
          .filter((secret) => secret !== undefined),
    }
  }

  #note(key: string, secret: ApiObject): void {
    if (!isDefaultProvider(secret)) {
      this.#drop(key, secret)
      return
    }
    const namespace = namespaceOf(secret)
    const keys = this.#defaults.get(namespace)
    if (keys === undefined) this.#defaults.set(namespace, new Set([key]))
    else keys.add(key)
  }

  #drop(key: string, secret: ApiObject): void {
    const namespace = namespaceOf(secret)
    const keys = this.#defaults.get(namespace)
    keys?.delete(key)
    if (keys?.size === 0) this.#defaults.delete(namespace)
  }
}

export function isDefaultProvider(secret: ApiObject): boolean {
  return labelOf(secret, DEFAULT_PROVIDER_LABEL) === 'true'
}

/** The part of a Secret that is cached: its identity, and data only of provider Secrets. */
export function trimSecret(secret: ApiObject): ApiObject {
  const { name, namespace, uid, resourceVersion } = metadataOf(secret)
  const isOurs = textOf(secret, 'type') === COREDNS_SECRET_TYPE
  const labels = isDefaultProvider(secret) ? { [DEFAULT_PROVIDER_LABEL]: 'true' } : {}
  const data = mappingOf(secret, 'data')
  const kept = KEYS.filter((key) => isOurs && data[key] !== undefined).map((key) => [
    key,
    data[key],
  ])
  const identity = { name: name ?? '', namespace: namespace ?? '', uid: uid ?? '' }
  return {
    type: textOf(secret, 'type'),
    metadata: { ...identity, resourceVersion: resourceVersion ?? '', labels },
    data: Object.fromEntries(kept),
  }
}

function namespaceOf(object: ApiObject): string {
  return textOf(metadataOf(object), 'namespace')
}
