import { type ApiObject, textOf } from '../../kube/api.ts'
import { API_VERSION } from '../../record/dns-record.ts'
import { AUTHORITATIVE_LABEL, ZONE_LABEL } from '../labels.ts'
import { mappingOf, metadataOf } from '../object.ts'
import { shortHash } from '../short-hash.ts'

export const AUTHORITATIVE_HASH_LABEL = 'kuadrant.io/authoritative-record-hash'
export const PROVIDER_LABEL = 'kuadrant.io/dns-provider-name'

/** Who the endpoints of several owners are for. */
export interface Authoritative {
  readonly namespace: string
  /** Of the records that delegate, with or without its `*.`. */
  readonly rootHost: string
  /** Name of the provider Secret; '' = the default one of the namespace. */
  readonly provider: string
  /** Zone that serves it, without final dot; '' = not known yet. */
  readonly zone: string
}

/** The host that `x` and `*.x` have their endpoints put together for. */
export function authoritativeHost(rootHost: string): string {
  return rootHost.replace(/^\*\./, '')
}

/** Name of the DNSRecord that all owners of a host put their endpoints into. */
export function authoritativeName(rootHost: string): string {
  return `authoritative-record-${shortHash(authoritativeHost(rootHost))}`
}

/** Key of the record that a delegating one delegates to: in its namespace. */
export function authoritativeKey(record: ApiObject): string {
  const name = authoritativeName(textOf(mappingOf(record, 'spec'), 'rootHost'))
  return `${textOf(metadataOf(record), 'namespace')}/${name}`
}

/** Its labels: those by which it is found, and, once the zone is known, those by which it is served. */
export function authoritativeLabels({
  rootHost,
  zone,
}: Pick<Authoritative, 'rootHost' | 'zone'>): Readonly<Record<string, string>> {
  return {
    [AUTHORITATIVE_LABEL]: 'true',
    [AUTHORITATIVE_HASH_LABEL]: shortHash(authoritativeHost(rootHost)),
    ...(zone === '' ? {} : { [PROVIDER_LABEL]: 'coredns', [ZONE_LABEL]: zone }),
  }
}

/** The record itself. It belongs to nobody: it goes when its endpoints have gone. */
export function composeAuthoritative(
  facts: Authoritative,
  endpoints: readonly ApiObject[],
): ApiObject {
  const { namespace, rootHost, provider } = facts
  const name = authoritativeName(rootHost)
  return {
    apiVersion: API_VERSION,
    kind: 'DNSRecord',
    metadata: { namespace, name, labels: authoritativeLabels(facts) },
    spec: {
      rootHost: authoritativeHost(rootHost),
      ...(provider === '' ? {} : { providerRef: { name: provider } }),
      endpoints,
    },
  }
}
