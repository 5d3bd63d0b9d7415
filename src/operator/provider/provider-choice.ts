import type { Cidr } from '../../dns/text/address.ts'
import { type ApiObject, textOf } from '../../kube/api.ts'
import { DEFAULT_PROVIDER_LABEL } from '../record/labels.ts'
import { COREDNS_SECRET_TYPE, type Provider, readProvider } from './provider-secret.ts'

/** The provider of a record. */
type ProviderChoice =
  | { readonly kind: 'ours'; readonly provider: Provider }
  /** Its Secret has another type, so the record belongs to another provider. */
  | { readonly kind: 'other' }
  /**
   * No Secret was found, or it is invalid. `isMissing`: no single Secret was found, so the record's
   * provider is unknown.
   */
  | { readonly kind: 'fault'; readonly message: string; readonly isMissing: boolean }

/** The Secrets of one namespace. */
export interface ProviderSecrets {
  find(name: string): ApiObject | undefined
  /** The Secrets with the label of default providers. */
  defaults(): readonly ApiObject[]
  /** Networks of nameservers that are refused otherwise; missing = none. */
  readonly allowed?: readonly Cidr[] | undefined
}

/** The provider with that name; '' = the default provider of the namespace. */
export function chooseProvider(name: string, secrets: ProviderSecrets): ProviderChoice {
  const secret = findProviderSecret(name, secrets)
  return typeof secret === 'string'
    ? { kind: 'fault', message: secret, isMissing: true }
    : read(secret, secrets)
}

/** Returns the Secret of `chooseProvider`, or why there is no single one. */
export function findProviderSecret(name: string, secrets: ProviderSecrets): ApiObject | string {
  if (name !== '') return secrets.find(name) ?? `Secret ${JSON.stringify(name)} not found`
  const [secret, second] = secrets.defaults()
  if (second !== undefined) return 'Multiple default providers secrets found. Only one expected'
  return secret ?? `No default provider secret labeled ${DEFAULT_PROVIDER_LABEL} was found`
}

function read(secret: ApiObject, { allowed }: ProviderSecrets): ProviderChoice {
  if (textOf(secret, 'type') !== COREDNS_SECRET_TYPE) return { kind: 'other' }
  const provider = readProvider(secret, allowed)
  if (typeof provider !== 'string') return { kind: 'ours', provider }
  const name = textOf(secret.metadata, 'name')
  return { kind: 'fault', message: `Secret ${JSON.stringify(name)}: ${provider}`, isMissing: false }
}
