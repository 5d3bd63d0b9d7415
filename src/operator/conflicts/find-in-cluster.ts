import type { HostShare } from '../../records/host-share.ts'
import type { StoredRecord } from '../../records/record-source.ts'
import { type ApiClock, isWrong } from '../cluster/clock-check.ts'
import type { ClusterView } from '../cluster/cluster-view.ts'
import { authoritativeKey } from '../delegation/authoritative-record.ts'
import { type DelegationRole, decide, type Publishing } from '../plan/decide.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { claimsIn, withoutForeignNames } from './host-rights.ts'
import {
  type ConflictScope,
  findConflicts,
  NO_CONFLICTS,
  type RecordConflicts,
} from './record-conflicts.ts'

/** The records of a cluster, as one operator sees them. */
interface ConflictView {
  readonly view: Pick<
    ClusterView,
    'record' | 'recordsSharing' | 'secretsOf' | 'claimantsAt' | 'claimantsBelow'
  >
  readonly role: DelegationRole
  /** The name of this cluster among its peers. */
  readonly site: string
  /** Namespaces that may have hosts of others; missing = none. */
  readonly shares?: readonly HostShare[]
  /** Missing = the clock of our API server is not known. */
  readonly apiClock?: Pick<ApiClock, 'fault'> | undefined
}

/**
 * Returns the endpoints of a published or authoritative record that are not served because of other records, and why.
 * `foreign`: records of other sites.
 */
export function findConflictsOf(
  publishing: Publishing,
  scene: ConflictView,
  foreign?: readonly StoredRecord[],
): RecordConflicts {
  return find(publishing, scene, { foreign })
}

/**
 * Returns the endpoints of a delegating record, a part of an authoritative record, that are not served because of other
 * records, and why. `site`: of the cluster that has the delegating record.
 */
export function findPartConflicts(
  record: DnsRecordView,
  site: string,
  scene: ConflictView,
): RecordConflicts {
  const authoritative = scene.view.record(authoritativeKey(record))
  if (authoritative === undefined) return NO_CONFLICTS
  const action = decideIn(authoritative, scene)
  if (action.kind !== 'serve') return NO_CONFLICTS
  return find(action.publishing, scene, { part: { key: record.key, site } })
}

function find(
  publishing: Publishing,
  scene: ConflictView,
  more: Pick<ConflictScope, 'part' | 'foreign'>,
): RecordConflicts {
  const { view, site, role, shares = [], apiClock } = scene
  const rights = { view, role, shares }
  const claims = claimsIn(publishing.zone, rights)
  const sharing = (name: string): readonly Publishing[] =>
    view.recordsSharing(publishing.record.key, name).flatMap((other) => {
      const action = decideIn(other, scene)
      const isServed = action.kind === 'publish' || action.kind === 'serve'
      if (!isServed || action.publishing.zone !== publishing.zone) return []
      return [withoutForeignNames(action.publishing, rights, claims).publishing]
    })
  return findConflicts(publishing, { site, isUndated: isWrong(apiClock), sharing, ...more })
}

function decideIn(record: DnsRecordView, { view, role }: ConflictView): ReturnType<typeof decide> {
  return decide(record, view.secretsOf(record.namespace), role)
}
