import type { ApiObject } from '../../kube/api.ts'
import { API_VERSION } from '../../records/dns-record.ts'
import type { DnsRecordView } from './record-view.ts'

/** A DNSRecord that the operator writes. */
export interface DesiredRecord {
  readonly namespace: string
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  /** Missing = none of ours. */
  readonly annotations?: Readonly<Record<string, string>>
  /** The record that it is derived from; undefined = none: its writers delete it. */
  readonly owner: DnsRecordView | undefined
  readonly spec: ApiObject
}

/** The record in the API's form. */
export function printRecord(record: DesiredRecord): ApiObject {
  const { namespace, name, labels, annotations = {}, owner, spec } = record
  const kind = { apiVersion: API_VERSION, kind: 'DNSRecord' }
  const metadata = {
    name,
    namespace,
    labels,
    ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    ...(owner && { ownerReferences: [{ ...kind, name: owner.name, uid: owner.uid }] }),
  }
  return { ...kind, metadata, spec }
}
