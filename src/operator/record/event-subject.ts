import type { EventSubject } from '../../kube/event-series.ts'
import { API_VERSION } from '../../records/dns-record.ts'
import type { DnsRecordView } from './record-view.ts'

/** A record as the object of an Event. */
export function subjectOf({ namespace, name, uid }: DnsRecordView): EventSubject {
  return { apiVersion: API_VERSION, kind: 'DNSRecord', namespace, name, uid }
}
