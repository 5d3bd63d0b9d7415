import type { Clock } from '../../base/clock.ts'
import { ApiError, type ApiObject, textOf } from '../../kube/api.ts'
import { type Condition, failedCondition, REASONS, rivalCondition } from '../conditions.ts'
import { decide, isAuthoritative, isDelegating, isDerived } from '../decide.ts'
import { authoritativeKey } from '../delegation/authoritative-record.ts'
import { readOwners } from '../delegation/endpoint-states.ts'
import type { KeyedMutex } from '../delegation/keyed-mutex.ts'
import type { Owners } from '../delegation/owner-index.ts'
import { planDelegate, planDepartures, planUndelegate } from '../delegation/plan-source.ts'
import { asSeenByCluster, isReadyForDelegation } from '../delegation/remote-statuses.ts'
import { isDeleting, itemsOf, mappingOf, metadataOf } from '../object.ts'
import { type Plan, planRefuse } from '../plan.ts'
import { chooseProvider } from '../provider-choice.ts'
import type { ClusterView } from '../reconcile.ts'
import { composeStatus, isStatusInPlace, ownerIdOf } from '../status.ts'
import type { Writer } from '../write.ts'

/** The records of another cluster as they are known. */
export interface RemoteView {
  record(key: string): ApiObject | undefined
  /** Keys of the records there that delegate to the authoritative record of that key. */
  sourcesOf(authoritativeKey: string): Iterable<string>
}

export interface RemoteReconcilerParts {
  /** This cluster, which has the authoritative records. */
  readonly view: ClusterView
  readonly writer: Writer
  readonly mutex: KeyedMutex
  readonly owners: Owners
  readonly remote: RemoteView
  /** Has `status` be what this cluster says in the status of a record of the other one. */
  readonly writeStatus: (record: ApiObject, status: ApiObject) => Promise<void>
  readonly clock: Clock
  /** UID of this cluster: what it says is found by. */
  readonly ownUid: string
  /** Short id of the other cluster. */
  readonly cluster: string
}

/** What is to be said in the status of a record of the other cluster. */
interface StatusWrite {
  readonly record: ApiObject
  /** undefined = it is said already. */
  readonly status: ApiObject | undefined
  /** Why this cluster could not do what it is about: it is to be tried again. */
  readonly error?: ApiError
}

const NOTHING: Plan = { writes: [], ready: undefined, isChanged: false }

/** Refusals that are the same the next time. */
const LASTING: readonly number[] = [400, 403, 404, 413, 422]

/**
 * Brings the delegating records of one other cluster into the authoritative records of this one. There it writes nothing
 * but what this cluster says of them in their status.
 */
export class RemoteReconciler {
  readonly #parts: RemoteReconcilerParts

  constructor(parts: RemoteReconcilerParts) {
    this.#parts = parts
  }

  /** Looks at the record `namespace/name` of the other cluster. Resolves to true where it is one that delegates. */
  async reconcile(key: string): Promise<boolean> {
    const { remote, mutex } = this.#parts
    const object = remote.record(key)
    if (object === undefined || !this.#isForUs(key, object)) return false
    const reported = await mutex.take(authoritativeKey(object), () => this.#reconcile(key))
    // Not in the turn: whoever waits for it must not wait for the other cluster.
    if (reported?.status !== undefined)
      await this.#parts.writeStatus(reported.record, reported.status)
    if (reported?.error !== undefined) throw reported.error
    return true
  }

  /** Takes back what records of the other cluster that are gone have left in an authoritative record. */
  async sweep(key: string): Promise<void> {
    const { view, writer, mutex } = this.#parts
    await mutex.take(key, async () => {
      const authoritative = view.record(key)
      if (authoritative === undefined || !isAuthoritative(authoritative)) return
      const writes = planDepartures(authoritative, this.#departed(key, authoritative))
      for (const write of writes) await writer.write(write)
    })
  }

  /** Does what is to be done here; resolves to what is to be said there, if anything. */
  async #reconcile(key: string): Promise<StatusWrite | undefined> {
    const { remote, view, owners, clock, ownUid } = this.#parts
    const object = remote.record(key)
    if (object === undefined || !this.#isForUs(key, object)) return undefined
    const secrets = view.secretsOf(textOf(metadataOf(object), 'namespace'))
    // All of it is another operator's, what is said there as well.
    if (chooseProvider(object, secrets).kind === 'other') return undefined
    const seenObject = asSeenByCluster(object, ownUid)
    const nowMs = clock.now()
    const rival = owners.rivalOf(object)
    // What is noted of the owner id of both is its rival's.
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

  /** What this cluster will not take however often it is tried is to be seen where the record is. */
  #reportFault(record: ApiObject, error: unknown): StatusWrite | undefined {
    if (!(error instanceof ApiError) || !LASTING.includes(error.status)) return undefined
    const { clock, ownUid } = this.#parts
    const seenObject = asSeenByCluster(record, ownUid)
    const status = composeStatus(seenObject, [failedCondition(error.message)], {}, clock.now())
    if (isDeleting(record)) return undefined
    return { record, status: isStatusInPlace(seenObject, status) ? undefined : status, error }
  }

  /** A record that is here as well is our own: that cluster is this one. */
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

/** Whose Secret it is that is missing, or bad. */
function placed(condition: Condition, namespace: string): Condition {
  if (condition.reason !== REASONS.dnsProviderError) return condition
  const where = `in the namespace ${namespace} of the primary cluster, which has to be there`
  return { ...condition, message: `${condition.message} (${where})` }
}

function uidOf(object: ApiObject): string {
  return textOf(metadataOf(object), 'uid')
}
