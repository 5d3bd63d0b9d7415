import { Backoff } from '../../base/backoff.ts'
import type { Clock } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import type { ApiClient, ApiObject } from '../../kube/api.ts'
import { Informer } from '../../kube/informer.ts'
import { Objects } from '../../kube/objects.ts'
import { ClockCheck } from '../cluster/clock-check.ts'
import { readClusterUid } from '../cluster/cluster-uid.ts'
import { trimObject } from '../cluster/object-cache.ts'
import { metadataOf } from '../record/fields.ts'
import { roleOf } from '../record/record-view.ts'
import { RECORDS } from '../record/resources.ts'
import { shortHash } from '../record/short-hash.ts'
import { ApiHeartbeat } from './api-heartbeat.ts'

/** The fault of a cluster that has not answered yet. */
export const NOT_REACHED = 'not reached yet'
/** Timeout of one request. */
const TIMEOUT_MS = 10_000
/**
 * Refusals that are needed after the records could be read: an API server that is starting refuses
 * what it grants later.
 */
const REFUSALS = 3

interface RemoteContactParts {
  readonly api: ApiClient
  /** As of `Informer`. */
  readonly namespaces: readonly string[]
  /** UID of the local cluster. */
  readonly ownUid: string
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly log: Logger
}

/** The API server of another cluster: finds out which cluster it is, and reads its records from then on. */
export class RemoteContact {
  readonly #parts: RemoteContactParts
  /** Compares its clock with ours. */
  readonly clock: ClockCheck
  readonly objects: Objects
  /** Its records. Of those that do not delegate, only their existence. */
  readonly records: Informer
  readonly #heartbeat: ApiHeartbeat
  #fault = NOT_REACHED
  #refusals = 0
  #isInforming = false
  #isClosed = false
  #wake: () => void = () => {}

  constructor(parts: RemoteContactParts) {
    const { api, namespaces, ownUid, clock, timers, random, log } = parts
    this.#parts = parts
    this.clock = new ClockCheck(api, { clock, log })
    this.#heartbeat = new ApiHeartbeat({ api: this.clock, clock, timers })
    // A distinct field manager: the operator in that cluster uses the default name.
    const fieldManager = `sextant-primary-${shortHash(ownUid)}`
    // Its first answer shows its clock, so that ages never decide by mistake.
    const checked = this.clock
    this.objects = new Objects({ api: checked, timers, fieldManager, timeoutMs: TIMEOUT_MS })
    this.records = new Informer({
      ...{ api, clock, timers, random, log, namespaces },
      resource: RECORDS,
      labelSelector: '',
      trim: trimRemote,
    })
  }

  /** As in `FollowedClusters`. */
  get heardMs(): number {
    return this.#heartbeat.heardMs
  }

  /** Why the cluster is not followed just now; '' = it is. */
  get fault(): string {
    return this.#fault === '' ? this.records.reason : this.#fault
  }

  /**
   * Calls `follow` with the id of the cluster once all its records are read, unless it is closed before. `claim`
   * returns why the cluster can't have an id; '' = it can. Never rejects.
   */
  async connect(claim: (id: string) => string, follow: (id: string) => void): Promise<void> {
    this.#heartbeat.start()
    const backoff = new Backoff(this.#parts.random)
    let id: string | undefined
    while (id === undefined) {
      id = await this.#identify(claim)
      if (this.#isClosed) return
      if (id === undefined) await this.#wait(backoff.next())
      if (this.#isClosed) return
    }
    // Its records are served from here on, which may be before it is asked.
    this.#heartbeat.note()
    this.#inform()
    await this.records.synced()
    if (!this.#isClosed) follow(id)
  }

  close(): void {
    this.#isClosed = true
    this.#wake()
    this.records.close()
    this.objects.close()
    this.#heartbeat.close()
  }

  #inform(): void {
    if (!this.#isInforming) this.records.start()
    this.#isInforming = true
  }

  /** Returns the id of the cluster; undefined = it can't be used, because of `#fault`. */
  async #identify(claim: (id: string) => string): Promise<string | undefined> {
    const found = await readClusterUid(this.objects)
    if ('problem' in found && !this.#isRefused(found)) {
      this.#noteFault((found.isForbidden && this.records.reason) || found.problem)
      return undefined
    }
    // Accounts that Kuadrant creates may not read it. The address of the API server then identifies
    // the cluster.
    const id = shortHash('uid' in found ? found.uid : this.#parts.api.place)
    const problem = claim(id)
    this.#noteFault(problem)
    return problem === '' ? id : undefined
  }

  #noteFault(fault: string): void {
    if (!this.#isClosed) this.#fault = fault
  }

  /** True for an account that may follow the records but not read the identity of the cluster. */
  #isRefused({ isForbidden }: { readonly isForbidden: boolean }): boolean {
    if (!isForbidden || this.#isClosed) return false
    this.#inform()
    return this.records.isSynced && ++this.#refusals >= REFUSALS
  }

  #wait(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#parts.timers.after(delayMs, resolve)
      this.#wake = () => {
        cancel()
        resolve()
      }
    })
  }
}

/** The part of a remote record that is cached. */
function trimRemote(record: ApiObject): ApiObject {
  if (isDelegating(record)) return trimObject(record)
  const { name = '', namespace = '', uid = '', resourceVersion = '' } = metadataOf(record)
  return { metadata: { name, namespace, uid, resourceVersion } }
}

export function isDelegating(object: ApiObject): boolean {
  return roleOf(object) === 'delegating'
}
