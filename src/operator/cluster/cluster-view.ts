import type { OwnNames } from '../../peering/trust/screen-site-states.ts'
import type { OwnHealth } from '../plan/own.ts'
import type { ProviderSecrets } from '../provider/provider-choice.ts'
import type { DnsRecordView } from '../record/record-view.ts'

/** The known state of the cluster, including our own writes. */
export interface ClusterView {
  /** The DNSRecord `namespace/name`. */
  record(key: string): DnsRecordView | undefined
  secretsOf(namespace: string): ProviderSecrets
  /** Known health of a record's own addresses. */
  healthOf(key: string): OwnHealth
  /** Names of all other records. `zones`: apexes of the record's provider. */
  namesBeside(key: string, zones: readonly string[]): OwnNames
  /** The other records with an endpoint of that name, except derived and delegating ones. */
  recordsSharing(key: string, name: string): readonly DnsRecordView[]
  /** The records that may claim a name: lower case, without the final dot and `*.`. Derived ones are left out. */
  claimantsAt(name: string): readonly DnsRecordView[]
  /** Those that may claim names below it. */
  claimantsBelow(name: string): Iterable<DnsRecordView>
}
