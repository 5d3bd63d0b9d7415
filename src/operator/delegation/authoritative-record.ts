import type { ApiObject } from '../../kube/api.ts'
import type { DesiredRecord } from '../record/desired-record.ts'
import { AUTHORITATIVE_LABEL, ZONE_LABEL } from '../record/labels.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { shortHash } from '../record/short-hash.ts'
import { annotationsOf } from '../record/sites-annotation.ts'

const AUTHORITATIVE_HASH_LABEL = 'kuadrant.io/authoritative-record-hash'
const PROVIDER_LABEL = 'kuadrant.io/dns-provider-name'

/** Identity of an authoritative record, which combines the endpoints of several owners. */
export interface Authoritative {
  readonly namespace: string
  /** Root host of the delegating records, with or without `*.`. */
  readonly rootHost: string
  /** Name of the provider Secret; '' = the default provider of the namespace. */
  readonly provider: string
  /** Zone that serves the record, without the final dot; '' = not known yet. */
  readonly zone: string
}

/** The host for which the endpoints of `x` and `*.x` are combined. */
export function authoritativeHost(rootHost: string): string {
  return rootHost.replace(/^\*\./, '')
}

/** Name of the DNSRecord into which all owners of a host put their endpoints. */
export function authoritativeName(rootHost: string): string {
  return `authoritative-record-${shortHash(authoritativeHost(rootHost))}`
}

/** Key of the record that a delegating record delegates to, in the same namespace. */
export function authoritativeKey({ namespace, rootHost }: DnsRecordView): string {
  return `${namespace}/${authoritativeName(rootHost)}`
}

/**
 * Labels that identify the record and, once the zone is known, the labels by which it is served.
 */
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

/**
 * The authoritative record. It has no ownerReference: it is deleted when its last endpoint is
 * removed. `annotation`: the facts of its owners; '' = none.
 */
export function composeAuthoritative(
  identity: Authoritative,
  endpoints: readonly ApiObject[],
  annotation: string,
): DesiredRecord {
  const { namespace, rootHost, provider } = identity
  const spec = {
    rootHost: authoritativeHost(rootHost),
    ...(provider === '' ? {} : { providerRef: { name: provider } }),
    endpoints,
  }
  const name = authoritativeName(rootHost)
  const labels = authoritativeLabels(identity)
  return { namespace, name, labels, annotations: annotationsOf(annotation), owner: undefined, spec }
}
