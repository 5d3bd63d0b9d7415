import type { Clock } from '../../base/clock.ts'
import { ApiError, type ApiObject, textOf } from '../../kube/api.ts'
import { authoritativeKey } from '../delegation/authoritative-record.ts'
import { readOwners } from '../delegation/endpoint-states.ts'
import type { KeyedMutex } from '../delegation/keyed-mutex.ts'
import type { Owners } from '../delegation/owner-index.ts'
import { planDelegate, planDepartures, planUndelegate } from '../delegation/plan-source.ts'
import { asSeenByCluster, isReadyForDelegation } from '../delegation/remote-statuses.ts'
import { decide, isAuthoritative, isDelegating, isDerived } from '../plan/decide.ts'
import { type Plan, planRefuse } from '../plan/plan.ts'
import type { Writer } from '../plan/write.ts'
import { chooseProvider } from '../provider/provider-choice.ts'
import type { ClusterView } from '../reconcile/reconciler.ts'
import { isDeleting, itemsOf, mappingOf, metadataOf } from '../record/object.ts'
import { type Condition, failedCondition, REASONS, rivalCondition } from '../status/conditions.ts'
import { composeStatus, isStatusInPlace, ownerIdOf } from '../status/status.ts'

/** The known records of another cluster. */
export interface RemoteView {
  record(key: string): ApiObject | undefined
  /**
   * Keys of the records in that cluster that delegate to the authoritative record
   * `authoritativeKey`.
   */
  sourcesOf(authoritativeKey: string): Iterable<string>
}

export interface RemoteReconcilerParts {
  /** This cluster, which holds the authoritative records. */
  readonly view: ClusterView
  readonly writer: Writer
  readonly mutex: KeyedMutex
  readonly owners: Owners
  readonly remote: RemoteView
  /** Writes `status` as this cluster's part of the status of a record in the other cluster. */
  readonly writeStatus: (record: ApiObject, status: ApiObject) => Promise<void>
  readonly clock: Clock
  /** UID of this cluster, under which its part of the status is stored. */
  readonly ownUid: string
  /** Short id of the other cluster. */
  readonly cluster: string
}

/** The status to write to a record of the other cluster. */
interface StatusWrite {
  readonly record: ApiObject
  /** undefined = it is already in place. */
  readonly status: ApiObject | undefined
  /** Why this cluster could not do the work that the status reports; it is to be retried. */
  readonly error?: ApiError
}

const NOTHING: Plan = { writes: [], ready: undefined, isChanged: false }

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
    const { remote, mutex } = this.#parts
    const object = remote.record(key)
    if (object === undefined || !this.#isForUs(key, object)) return false
    const reported = await mutex.take(authoritativeKey(object), () => this.#reconcile(key))
    // Outside the mutex: writers that wait for the mutex must not wait for the other cluster.
    if (reported?.status !== undefined)
      await this.#parts.writeStatus(reported.record, reported.status)
    if (reported?.error !== undefined) throw reported.error
    return true
  }

  /** Removes what deleted records of the other cluster have left in an authoritative record. */
  async sweep(key: string): Promise<void> {
    const { view, writer, mutex } = this.#parts
    await mutex.take(key, async () => {
      const authoritative = view.record(key)
      if (authoritative === undefined || !isAuthoritative(authoritative)) return
      const writes = planDepartures(authoritative, this.#departed(key, authoritative))
      for (const write of writes) await writer.write(write)
    })
  }

  /**
   * Does the work in this cluster; resolves to the status to write to the other cluster, if any.
   */
  async #reconcile(key: string): Promise<StatusWrite | undefined> {
    const { remote, view, owners, clock, ownUid } = this.#parts
    const object = remote.record(key)
    if (object === undefined || !this.#isForUs(key, object)) return undefined
    const secrets = view.secretsOf(textOf(metadataOf(object), 'namespace'))
    // Another operator is responsible for the whole record, including its status.
    if (chooseProvider(object, secrets).kind === 'other') return undefined
    const seenObject = asSeenByCluster(object, ownUid)
    const nowMs = clock.now()
    const rival = owners.rivalOf(object)
    // The notes of an owner id with a rival belong to the rival.
    const authoritative = rival === '' ? view.record(authoritativeKey(object)) : undefined
    if (isDeleting(object)) {
      return this.#carryOut(object, planUndelegate(seenObject, authoritative, nowMs))
    }
    if (!isReadyForDelegation(object)) return undefined
    if (rival !== '') {
      const condition = rivalCondition(ownerIdOf(object), rival)
      return this.#carryOut(object, planRefuse(seenObject, condition, nowMs))
    }
    return this.#carryOut(object, this.#plan(seenObject, authoritative, nowMs))
  }

  #plan(seenObject: ApiObject, authoritative: ApiObject | undefined, nowMs: number): Plan {
    const { view, cluster } = this.#parts
    const namespace = textOf(metadataOf(seenObject), 'namespace')
    const verdict = decide(seenObject, view.secretsOf(namespace))
    switch (verdict.kind) {
      case 'delegate': {
        const endpoints = itemsOf(mappingOf(seenObject, 'spec'), 'endpoints')
        const content = { authoritative, endpoints, healthy: undefined, cluster }
        return planDelegate(verdict.publishing, content, nowMs)
      }
      case 'refuse':
        return planRefuse(seenObject, placed(verdict.condition, namespace), nowMs)
      default:
        return NOTHING
    }
  }

  async #carryOut(record: ApiObject, { writes }: Plan): Promise<StatusWrite | undefined> {
    let reported: StatusWrite | undefined
    try {
      for (const write of writes) {
        if (write.kind === 'status') reported = { record, status: write.status }
        else await this.#parts.writer.write(write)
      }
    } catch (error) {
      const fault = this.#reportFault(record, error)
      if (fault === undefined) throw error
      return fault
    }
    return reported
  }

  /** Reports an error of this cluster that a retry does not change in the status of the record. */
  #reportFault(record: ApiObject, error: unknown): StatusWrite | undefined {
    if (!(error instanceof ApiError) || !LASTING.includes(error.status)) return undefined
    const { clock, ownUid } = this.#parts
    const seenObject = asSeenByCluster(record, ownUid)
    const status = composeStatus(seenObject, [failedCondition(error.message)], {}, clock.now())
    if (isDeleting(record)) return undefined
    return { record, status: isStatusInPlace(seenObject, status) ? undefined : status, error }
  }

  /** A record that also exists here is our own: that cluster is this one. */
  #isForUs(key: string, object: ApiObject): boolean {
    const own = this.#parts.view.record(key)
    const isOwn = own !== undefined && uidOf(own) === uidOf(object)
    return isDelegating(object) && !isDerived(object) && !isOwn
  }

  #departed(key: string, authoritative: ApiObject): string[] {
    const { remote, cluster } = this.#parts
    const present = new Set<string>()
    for (const source of remote.sourcesOf(key)) {
      const record = remote.record(source)
      if (record !== undefined) present.add(ownerIdOf(record))
    }
    const endpoints = itemsOf(mappingOf(authoritative, 'spec'), 'endpoints')
    return [...readOwners(endpoints)]
      .filter(([owner, where]) => where === cluster && !present.has(owner))
      .map(([owner]) => owner)
  }
}

/** Names the namespace of the missing or invalid Secret. */
function placed(condition: Condition, namespace: string): Condition {
  if (condition.reason !== REASONS.dnsProviderError) return condition
  const where = `in the namespace ${namespace} of the primary cluster, which has to be there`
  return { ...condition, message: `${condition.message} (${where})` }
}

function uidOf(object: ApiObject): string {
  return textOf(metadataOf(object), 'uid')
}
