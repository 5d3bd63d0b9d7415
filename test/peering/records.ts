import type { DnsRecord } from '../../src/records/dns-record.ts'
import { packRecord } from '../../src/records/pack.ts'
import type { EndpointObject } from '../../src/records/print-endpoint.ts'
import type { StoredRecord } from '../../src/records/record-source.ts'
import { validateResource } from '../../src/records/validate/resource.ts'
import type { YamlValue } from '../../src/yaml/scan-block-yaml.ts'

export interface RecordGiven {
  readonly rootHost: string
  readonly endpoints: readonly EndpointObject[]
  readonly labels?: { readonly [name: string]: string }
  readonly annotations?: { readonly [name: string]: string }
  readonly created?: string
}

/** A DNSRecord out of what would stand in a cluster. */
export function dnsRecord(given: RecordGiven): DnsRecord {
  const { rootHost, endpoints, labels = {}, annotations = {}, created = null } = given
  const resource = {
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'r', namespace: 'n', labels, annotations, creationTimestamp: created },
    spec: { rootHost, endpoints },
  }
  const got = validateResource(JSON.parse(JSON.stringify(resource)) as YamlValue)
  if (got.kind !== 'record') throw new Error(JSON.stringify(got))
  return got.record
}

export function stored(record: DnsRecord): StoredRecord {
  return { key: `${record.namespace}/${record.name}`, packed: packRecord(record) }
}

const properties = (geo: string, weight?: number) => {
  const list = geo === '' ? [] : [{ name: 'geo-code', value: geo }]
  return weight === undefined ? list : [...list, { name: 'weight', value: String(weight) }]
}

/** One gateway of a host, as a DNSPolicy with load balancing lays its endpoints out. */
export interface Gateway {
  readonly host: string
  readonly cluster: string
  /** `GEO-EU`. */
  readonly geo: string
  readonly isDefault: boolean
  readonly weight: number
  readonly addresses: readonly string[]
  /** `lb`: what the 2025 tests call what DNSPolicy calls `klb`. */
  readonly label?: string
}

export function layout(gateway: Gateway): EndpointObject[] {
  const { host, geo, weight, label = 'klb' } = gateway
  const base = host.replace(/^\*\./, '')
  const lb = `${label}.${base}`
  const place = `${geo.toLowerCase()}.${lb}`
  const leaf = `${gateway.cluster}.${lb}`
  const to = (dnsName: string, target: string, recordTTL: number) => {
    return { dnsName, recordType: 'CNAME', targets: [target], recordTTL }
  }
  const byDefault = {
    ...to(lb, place, 300),
    setIdentifier: 'default',
    providerSpecific: properties('*'),
  }
  return [
    to(host, lb, 300),
    { ...to(lb, place, 300), setIdentifier: geo, providerSpecific: properties(geo) },
    ...(gateway.isDefault ? [byDefault] : []),
    { ...to(place, leaf, 60), setIdentifier: leaf, providerSpecific: properties('', weight) },
    { dnsName: leaf, recordType: 'A', targets: gateway.addresses, recordTTL: 60 },
  ]
}
