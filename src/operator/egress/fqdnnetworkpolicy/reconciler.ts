import { DENIAL_TEXTS } from '../../../egress/learned/address-rules.ts'
import {
  type FqdnApi,
  type FqdnPolicy,
  readPolicy,
} from '../../../egress/policies/fqdn/fqdn-policy.ts'
import {
  differs,
  type FqdnStatus,
  printStatus,
  readCache,
} from '../../../egress/policies/fqdn/fqdn-status.ts'
import { networkPolicySpec } from '../../../egress/policies/fqdn/network-policy.ts'
import {
  foreignOwnerOf,
  isMadeFor,
  KIND,
} from '../../../egress/sinks/network-policy/network-policy-plan.ts'
import {
  type NetworkPolicyChange,
  NetworkPolicySink,
} from '../../../egress/sinks/network-policy/network-policy-sink.ts'
import { ApiError, type ApiObject, isObject, textOf } from '../../../kube/api.ts'
import type { EventRecorder } from '../../../kube/event-recorder.ts'
import type { EventDetails } from '../../../kube/event-series.ts'
import { isNotFound, type Objects } from '../../../kube/objects.ts'
import type { WorkResult } from '../../../kube/work-queue.ts'
import { NotLeadingError } from '../../cluster/api-writer.ts'
import type { ObjectCache } from '../../cluster/object-cache.ts'
import { metadataOf } from '../../record/fields.ts'
import type { DnsServers } from './dns-servers.ts'
import type { Lookups } from './lookups.ts'
import type { FqdnMetrics } from './metrics.ts'
import { scanPolicyKey } from './policy-key.ts'
import {
  beginState,
  FIRST_MS,
  firstEndMs,
  type GrantReader,
  type Now,
  type PolicyGrants,
  type PolicyState,
} from './policy-states.ts'

/** Set by the controllers of Google and nais. Owner references replace it. */
const GKE_FINALIZER = 'finalizer.fqdnnetworkpolicies.networking.gke.io'
/**
 * Part of the expiration period by which the expiries in the status may be behind, so that the
 * status is not written with each lookup.
 */
const TOLERANCE_PART = 12
/** HTTP statuses that a retry does not change. */
const LASTING: readonly number[] = [400, 403, 413, 422]
/** Faults of a policy that Events report. */
const FAULTS_MAX = 100

interface FqdnReconcilerParts {
  readonly policies: ReadonlyMap<FqdnApi, ObjectCache>
  readonly networkPolicies: ObjectCache
  readonly servers: DnsServers
  readonly lookups: Lookups
  readonly grants: GrantReader
  readonly expirationMs: number
  readonly objects: Objects
  readonly events: EventRecorder
  readonly metrics: FqdnMetrics
  readonly mayWrite: () => boolean
}

interface SinkState extends PolicyState {
  readonly sink: NetworkPolicySink
}

/** One policy, and what this run knows about it. */
interface Run {
  readonly policy: FqdnPolicy
  /** The policy as the API has it. */
  readonly object: ApiObject
  readonly state: SinkState
  readonly now: Now
}

/** Keeps the NetworkPolicy and the status of each FQDNNetworkPolicy. */
export class FqdnReconciler {
  readonly #parts: FqdnReconcilerParts
  readonly #states = new Map<string, SinkState>()

  constructor(parts: FqdnReconcilerParts) {
    this.#parts = parts
  }

  /** Number of policies by the state that was reported last. */
  get counts(): { readonly active: number; readonly pending: number } {
    const states = [...this.#states.values()]
    const active = states.filter(({ reported }) => reported === 'Active').length
    return { active, pending: states.length - active }
  }

  /** Keys of all policies that were reconciled. */
  keys(): readonly string[] {
    return [...this.#states.keys()]
  }

  /** Makes the NetworkPolicy and the status of a policy what they should be. Throws ApiError and NotLeadingError. */
  async reconcile(key: string): Promise<WorkResult | undefined> {
    let run = this.#begin(key)
    if (run === undefined) return undefined
    const { policy, state, now } = run
    if (policy.isDeleting) {
      await this.#finalize(run)
      return undefined
    }
    const existing = this.#parts.networkPolicies.get(`${policy.namespace}/${policy.name}`)
    const owner = existing === undefined ? '' : foreignOwnerOf(policy, existing)
    if (owner !== '') {
      await this.#refuse(run, `NetworkPolicy ${policy.name} is managed by ${owner}`)
      return undefined
    }
    const { grants: reader, expirationMs } = this.#parts
    const holdMs = reader.holdMs(policy, state, existing !== undefined, now.nowMs)
    if (holdMs > 0) {
      // Most names are resolved by then. The status stays as it is.
      const quietMs = state.firstMs + FIRST_MS - now.nowMs
      if (quietMs > 0) return { againMs: Math.min(quietMs, holdMs) }
      await this.#refuse(run, this.#parts.servers.reason || 'the names are not resolved yet')
      return { againMs: holdMs }
    }
    const grants = reader.grantsOf(policy, state, now.nowMs)
    this.#warn(run, grants)
    try {
      run = await this.#store(run, grants)
      const spec = networkPolicySpec(policy.spec, (fqdn) => grants.get(fqdn)?.untilMs.keys() ?? [])
      const fault = await state.sink.apply({ policy, existing, spec })
      if (fault !== '') throw new Error(fault)
      state.isApplied = true
    } catch (error) {
      this.#parts.metrics.countResult('failed')
      if (error instanceof ApiError && LASTING.includes(error.status)) {
        await this.#refuse(run, error.message)
      }
      throw error
    }
    await this.#report(run, grants, expirationMs / TOLERANCE_PART)
    const endMs = firstEndMs(grants)
    if (endMs === Number.POSITIVE_INFINITY) return undefined
    return { againMs: Math.min(Math.max(endMs - now.nowMs, 1), expirationMs / TOLERANCE_PART) }
  }

  /** Writes the expiries of a policy to its status, so that the next leader starts with them. */
  async flush(key: string): Promise<void> {
    if (this.#states.get(key)?.isApplied !== true) return
    const run = this.#begin(key)
    if (run === undefined || run.policy.isDeleting) return
    const grants = this.#parts.grants.grantsOf(run.policy, run.state, run.now.nowMs)
    await this.#report(run, grants, 1000)
  }

  /** Reports that a name of a policy cannot be resolved. */
  noteFailure(key: string, name: string, reason: string): void {
    const policy = this.#find(key)?.policy
    if (policy === undefined) return
    const note = `${name}: ${reason}; the name is resolved again with growing waits`
    this.#record(policy, { type: 'Warning', reason: 'LookupFailed', action: 'Resolve', note })
  }

  #find(key: string): { policy: FqdnPolicy; object: ApiObject } | undefined {
    const { api, objectKey } = scanPolicyKey(key)
    const object = this.#parts.policies.get(api)?.get(objectKey)
    return object === undefined ? undefined : { policy: readPolicy(api, object), object }
  }

  /** Reads a policy and starts its lookups, or forgets it if it is gone. */
  #begin(key: string): Run | undefined {
    const { lookups, grants: reader } = this.#parts
    const now = reader.now()
    const found = this.#find(key)
    if (found === undefined || found.policy.isDeleting) {
      lookups.release(key)
      this.#states.delete(key)
      if (found === undefined) return undefined
    }
    const { policy, object } = found
    const known = this.#states.get(key)
    const isKnown = known?.uid === policy.uid
    const state = isKnown ? known : this.#beginState(policy, object, now)
    if (!policy.isDeleting) {
      this.#states.set(key, state)
      lookups.hold(key, policy.wires, !reader.skipsAaaa(policy), state.dueMs)
    }
    return { policy, object, state, now }
  }

  #beginState(policy: FqdnPolicy, object: ApiObject, now: Now): SinkState {
    const { objects, networkPolicies, expirationMs } = this.#parts
    const sink = new NetworkPolicySink({
      objects,
      networkPolicies,
      checkLease: () => this.#checkLease(),
      onApplied: (applied, change) => this.#noteApplied(applied, change),
    })
    return { ...beginState(policy, object, expirationMs, now), sink }
  }

  #checkLease(): void {
    if (!this.#parts.mayWrite()) throw new NotLeadingError()
  }

  #noteApplied(policy: FqdnPolicy, change: NetworkPolicyChange): void {
    this.#parts.metrics.countResult(change === 'adopted' ? 'updated' : change)
    if (change !== 'created' && change !== 'adopted') return
    const reason = change === 'created' ? 'Created' : 'Adopted'
    const note = `NetworkPolicy ${policy.name} ${change}`
    this.#record(policy, { type: 'Normal', reason, action: 'Apply', note })
  }

  /** Reports that the NetworkPolicy cannot be kept as it should be. The rest of the status stays. */
  async #refuse(run: Run, reason: string): Promise<void> {
    const { object } = run
    const before = isObject(object.status) ? object.status : {}
    const status: FqdnStatus = { state: 'Pending', reason, nextSyncMs: undefined, cache: undefined }
    if (differs(before, status, 0)) {
      await this.#writeStatus(run, { ...before, ...printStatus(status) })
    }
    this.#noteState(run, status)
  }

  /**
   * Stores addresses before the NetworkPolicy allows them. A process that ends in between would leave
   * addresses whose expiry the next one does not know, and it would remove them at once.
   */
  async #store(run: Run, grants: PolicyGrants): Promise<Run> {
    const { policy, object, now } = run
    if (!policy.api.hasCache) return run
    const cache = this.#parts.grants.cacheOf(policy, grants, now)
    const stored = readCache(object.status)
    const areStored = [...cache].every(([fqdn, { expiryMs }]) => {
      const known = stored.get(fqdn)?.expiryMs
      return [...expiryMs.keys()].every((cidr) => known?.has(cidr) === true)
    })
    if (areStored) return run
    const isActive = textOf(object.status, 'state') === 'Active'
    const status: FqdnStatus = {
      state: isActive ? 'Active' : 'Pending',
      reason: isActive ? '' : 'the NetworkPolicy is not written yet',
      nextSyncMs: this.#parts.grants.nextSyncMs(policy, grants, now),
      cache,
    }
    return { ...run, object: await this.#writeStatus(run, printStatus(status)) }
  }

  /** Writes the status that follows from the grants, if it differs from the stored one. */
  async #report(run: Run, grants: PolicyGrants, toleranceMs: number): Promise<void> {
    const { policy, object, now } = run
    const { grants: reader } = this.#parts
    const reason = this.#reasonOf(policy)
    const status: FqdnStatus = {
      state: reason === '' ? 'Active' : 'Pending',
      reason,
      nextSyncMs: reader.nextSyncMs(policy, grants, now),
      cache: policy.api.hasCache ? reader.cacheOf(policy, grants, now) : undefined,
    }
    if (differs(object.status, status, toleranceMs)) {
      await this.#writeStatus(run, printStatus(status))
    }
    this.#noteState(run, status)
  }

  /** Why a policy is not complete although its NetworkPolicy is in place; '' = it is. */
  #reasonOf({ names }: FqdnPolicy): string {
    const invalid = [...names].filter(([, wire]) => wire === undefined).map(([fqdn]) => fqdn)
    if (invalid.length > 0) return `invalid names: ${invalid.join(', ')}`
    return names.size === 0 ? '' : this.#parts.servers.reason
  }

  /** Returns the object as the API has it then. */
  async #writeStatus({ policy, object }: Run, status: ApiObject): Promise<ApiObject> {
    const { objects, policies } = this.#parts
    this.#checkLease()
    const { api, namespace, name } = policy
    const { managedFields: _, ...metadata } = metadataOf(object)
    const identity = { apiVersion: `${api.group}/${api.version}`, kind: KIND }
    const ref = { resource: api, namespace, name }
    const wanted = { ...object, ...identity, metadata, status }
    const written = await objects.replaceStatus(ref, wanted)
    policies.get(api)?.noteWritten(written)
    return written
  }

  #noteState({ policy, state }: Run, { state: reported, reason }: FqdnStatus): void {
    state.reported = reported
    if (reason !== '') this.#warnOnce(policy, state, 'Pending', reason)
    for (const fault of state.faults) {
      if (fault.startsWith('Pending ') && fault !== `Pending ${reason}`) state.faults.delete(fault)
    }
  }

  /** Records an Event for each address that is not granted. */
  #warn({ policy, state }: Run, grants: PolicyGrants): void {
    for (const [fqdn, { denied }] of grants) {
      for (const [address, denial] of denied) {
        const note = `${fqdn}: ${address} is ${DENIAL_TEXTS[denial]}`
        this.#warnOnce(policy, state, 'AddressDenied', note)
      }
    }
  }

  #warnOnce(policy: FqdnPolicy, { faults }: PolicyState, reason: string, note: string): void {
    const fault = `${reason} ${note}`
    if (faults.has(fault) || faults.size >= FAULTS_MAX) return
    faults.add(fault)
    this.#record(policy, { type: 'Warning', reason, action: 'Apply', note })
  }

  #record({ api, namespace, name, uid }: FqdnPolicy, details: EventDetails): void {
    const apiVersion = `${api.group}/${api.version}`
    this.#parts.events.record({ apiVersion, kind: KIND, namespace, name, uid }, details)
  }

  /**
   * Removes the finalizer of the controllers of Google and nais. The garbage collector deletes the
   * NetworkPolicy; if this process has not adopted it before, it does so here.
   */
  async #finalize({ policy, state }: Run): Promise<void> {
    const { api, namespace, name, uid, finalizers } = policy
    const at = finalizers.indexOf(GKE_FINALIZER)
    if (at === -1) return
    const existing = this.#parts.networkPolicies.get(`${namespace}/${name}`)
    if (existing !== undefined && isMadeFor(policy, existing))
      await state.sink.adopt(policy, existing)
    this.#checkLease()
    const path = `/metadata/finalizers/${at}`
    const ref = { resource: api, namespace, name }
    try {
      await this.#parts.objects.patchSteps(ref, [
        { op: 'test', path: '/metadata/uid', value: uid },
        { op: 'test', path, value: GKE_FINALIZER },
        { op: 'remove', path },
      ])
    } catch (error) {
      if (!isNotFound(error, ref)) throw error
    }
  }
}
