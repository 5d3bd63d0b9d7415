import type { Clock } from '../../base/clock.ts'
import { ApiError, type ApiObject, textOf } from '../../kube/api.ts'
import type { HostShare } from '../../records/host-share.ts'
import { type ApiClock, isWrong } from '../cluster/clock-check.ts'
import type { ClusterView } from '../cluster/cluster-view.ts'
import { findPartConflicts } from '../conflicts/find-in-cluster.ts'
import { describeNotOwned, withoutForeignNames } from '../conflicts/host-rights.ts'
import { authoritativeKey } from '../delegation/authoritative-record.ts'
import { composeForeignFacts, markPartial } from '../delegation/contribution.ts'
import type { KeyedMutex } from '../delegation/keyed-mutex.ts'
import type { Owners } from '../delegation/owner-index.ts'
import { planDelegate } from '../delegation/plan-delegate.ts'
import { planDepartures, planUndelegate } from '../delegation/plan-finalize.ts'
import { isReadyForDelegation } from '../delegation/remote-statuses.ts'
import { readOwnedParts, readOwners } from '../delegation/whole.ts'
import { type GroupDirectory, NO_GROUPS } from '../groups/group-set.ts'
import { decide } from '../plan/decide.ts'
import { NO_CHANGE, type Plan, planRefuse } from '../plan/plan.ts'
import type { Writer } from '../plan/write.ts'
import { chooseProvider } from '../provider/provider-choice.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { type Condition, failedCondition, REASONS, rivalCondition } from '../status/conditions.ts'
import { composeStatus, isStatusInPlace } from '../status/status.ts'

/** The known records of another cluster. */
interface RemoteView {
  record(key: string): DnsRecordView | undefined
  /**
   * Keys of the records in that cluster that delegate to the authoritative record
   * `authoritativeKey`.
   */
  sourcesOf(authoritativeKey: string): Iterable<string>
}

interface RemoteReconcilerParts {
  /** This cluster, which holds the authoritative records. */
  readonly view: ClusterView
  readonly writer: Writer
  readonly mutex: KeyedMutex
  readonly owners: Owners
  readonly remote: RemoteView
  /** The clock of the other API server. */
  readonly remoteClock: Pick<ApiClock, 'fault'>
  /** That of ours; missing = it is not known. */
  readonly apiClock?: Pick<ApiClock, 'fault'> | undefined
  /** Writes `status` as this cluster's part of the status of a record in the other cluster. */
  readonly writeStatus: (record: DnsRecordView, status: ApiObject) => Promise<void>
  readonly clock: Clock
  /** UID of this cluster, under which its part of the status is stored. */
  readonly ownUid: string
  /** Short id of the other cluster. */
  readonly cluster: string
  /** The name of this cluster among its peers. */
  readonly site: string
  /** As in `FollowedClusters`. */
  readonly hasAll: (authoritativeKey: string) => boolean
  readonly groups?: GroupDirectory
  /** Namespaces that may use hosts of other namespaces; missing = none. */
  readonly shares?: readonly HostShare[]
}

/** The status to write to a record of the other cluster. */
interface StatusWrite {
  readonly record: DnsRecordView
  /** undefined = it is already in place. */
  readonly status: ApiObject | undefined
  /** Why this cluster could not do the work that the status reports; it is to be retried. */
  readonly error?: ApiError
}

/** HTTP statuses that a retry does not change. */
const LASTING: readonly number[] = [400, 403, 404, 413, 422]

/**
 * Puts the delegating records of one other cluster into the authoritative records of this one. In
 * the other cluster it writes only this cluster's part of their status.
 */
export class RemoteReconciler {
  readonly #parts: RemoteReconcilerParts

  constructor(parts: RemoteReconcilerParts) {
    this.#parts = parts
  }

  /**
   * Reconciles the record `namespace/name` of the other cluster. Resolves to true if it delegates.
   */
  async reconcile(key: string): Promise<boolean> {
    const { remote, mutex, writeStatus } = this.#parts
    const record = remote.record(key)
    if (record === undefined || !this.#isForUs(record)) {
      this.#parts.groups?.forget(key)
      return false
    }
    const report = await mutex.take(authoritativeKey(record), () => this.#reconcile(key))
    // Outside the mutex: writers that wait for the mutex must not wait for the other cluster.
    if (report?.status !== undefined) await writeStatus(report.record, report.status)
    if (report?.error !== undefined) throw report.error
    return true
  }

  /** Removes what deleted records of the other cluster have left in an authoritative record. */
  async sweep(key: string): Promise<void> {
    const { view, writer, mutex, clock } = this.#parts
    await mutex.take(key, async () => {
      const authoritative = view.record(key)
      if (authoritative?.role !== 'authoritative') return
      const writes = planDepartures(authoritative, this.#departed(authoritative), clock.now())
      for (const write of writes) await writer.write(write)
    })
  }

  /**
   * Does the work in this cluster; resolves to the status to write to the other cluster, if any.
   */
  async #reconcile(key: string): Promise<StatusWrite | undefined> {
    const { remote, view, owners, clock, ownUid } = this.#parts
    const record = remote.record(key)
    if (record === undefined || !this.#isForUs(record)) return undefined
    const secrets = view.secretsOf(record.namespace)
    // Another operator is responsible for the whole record, including its status.
    if (chooseProvider(record.providerName, secrets).kind === 'other') return undefined
    const seen = record.asSeenByCluster(ownUid)
    const nowMs = clock.now()
    const rival = owners.rivalOf(record)
    // The registry notes of an owner id with a rival belong to the rival.
    const authoritative = rival === '' ? view.record(authoritativeKey(record)) : undefined
    if (record.isDeleting) {
      return this.#carryOut(record, planUndelegate(seen, authoritative, nowMs))
    }
    if (!isReadyForDelegation(record)) return undefined
    if (rival !== '') {
      const condition = rivalCondition(record.ownerId, rival)
      return this.#carryOut(record, planRefuse(seen, condition, nowMs))
    }
    return this.#carryOut(record, this.#plan(seen, authoritative, groupOf(record), nowMs))
  }

  /** `group`: that of the other cluster. */
  #plan(
    seen: DnsRecordView,
    authoritative: DnsRecordView | undefined,
    group: string,
    nowMs: number,
  ): Plan {
    const { view, cluster, site, groups = NO_GROUPS, shares = [], apiClock } = this.#parts
    const scene = { view, site, role: 'primary', shares, apiClock } as const
    const { namespace, endpoints } = seen
    const action = decide(seen, view.secretsOf(namespace))
    switch (action.kind) {
      case 'delegate': {
        // A namespace of the other cluster has the rights of the namespace with the same name here.
        const { refused } = withoutForeignNames(action.publishing, scene)
        if (refused.length > 0) {
          const condition = failedCondition(describeNotOwned(refused, namespace).join('; '))
          return planRefuse(seen, condition, nowMs)
        }
        const membership = groups.membershipOf(seen.key, group, action.publishing)
        if (membership === 'pending') return NO_CHANGE
        const { facts: found, fault: note } = composeForeignFacts(action.publishing, {
          cluster,
          ownSite: site,
          sites: otherSites(authoritative, cluster),
          isUndated: isWrong(this.#parts.remoteClock),
        })
        const facts = markPartial(found, seen, authoritative, this.#parts)
        const unknown = { report: undefined, healthy: undefined, counts: undefined }
        const conflicts = findPartConflicts(seen, facts.site, scene)
        const about = { authoritative, membership, cluster, site, note, conflicts, ...unknown }
        return planDelegate(action.publishing, { ...about, endpoints, facts }, nowMs)
      }
      case 'refuse':
        return planRefuse(seen, withNamespace(action.condition, namespace), nowMs)
      default:
        return NO_CHANGE
    }
  }

  async #carryOut(record: DnsRecordView, { writes }: Plan): Promise<StatusWrite | undefined> {
    let report: StatusWrite | undefined
    try {
      for (const write of writes) {
        if (write.kind === 'status') report = { record, status: write.status }
        else await this.#parts.writer.write(write)
      }
    } catch (error) {
      const fault = this.#reportFault(record, error)
      if (fault === undefined) throw error
      return fault
    }
    return report
  }

  /** Reports an error of this cluster that a retry does not change in the status of the record. */
  #reportFault(record: DnsRecordView, error: unknown): StatusWrite | undefined {
    if (!(error instanceof ApiError) || !LASTING.includes(error.status)) return undefined
    if (record.isDeleting) return undefined
    const { clock, ownUid } = this.#parts
    const seen = record.asSeenByCluster(ownUid)
    const status = composeStatus(seen, [failedCondition(error.message)], {}, clock.now())
    return { record, status: isStatusInPlace(seen, status) ? undefined : status, error }
  }

  /** A record that also exists here is our own: that cluster is this one. */
  #isForUs({ key, role, uid }: DnsRecordView): boolean {
    return role === 'delegating' && this.#parts.view.record(key)?.uid !== uid
  }

  /** Owners in the other cluster whose records are gone. */
  #departed(authoritative: DnsRecordView): string[] {
    const { remote, cluster } = this.#parts
    const present = new Set<string>()
    for (const source of remote.sourcesOf(authoritative.key)) {
      const record = remote.record(source)
      if (record !== undefined) present.add(record.ownerId)
    }
    return readOwners(authoritative)
      .filter((owner) => owner.cluster === cluster && !present.has(owner.id))
      .map(({ id }) => id)
  }
}

/** The sites of other clusters that contribute to an authoritative record. */
function otherSites(
  authoritative: DnsRecordView | undefined,
  cluster: string,
): ReadonlySet<string> {
  const parts = authoritative === undefined ? [] : readOwnedParts(authoritative)
  return new Set(parts.flatMap(({ owner, site }) => (owner.cluster === cluster ? [] : [site])))
}

/** The group that the operator of the record's cluster reports; '' = none. */
function groupOf({ status }: DnsRecordView): string {
  return textOf(status, 'group')
}

/** Names the namespace of the missing or invalid Secret. */
function withNamespace(condition: Condition, namespace: string): Condition {
  if (condition.reason !== REASONS.dnsProviderError) return condition
  const where = `namespace ${namespace} of the primary cluster`
  return { ...condition, message: `${condition.message} (${where})` }
}
