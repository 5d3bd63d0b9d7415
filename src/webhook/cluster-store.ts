import type { Timers } from '../base/timers.ts'
import { type ApiClient, ApiError, type ApiObject, collectionPath, textOf } from '../kube/api.ts'
import { Lister } from '../kube/list.ts'
import { isAlreadyThere, isConflict, isNotFound, type ObjectRef, Objects } from '../kube/objects.ts'
import { OWNER_LABEL } from './host-record.ts'
import { type KeptRecord, type RecordStore, StoreUnavailable } from './record-store.ts'

const RESOURCE = { group: 'kuadrant.io', version: 'v1alpha1', plural: 'dnsrecords' }
/** external-dns waits 15 s by default. Without a reply, it ends; at a 503, it tries again. */
const TIMEOUT_MS = 10_000
/** Too many requests. */
const BUSY = 429

interface ClusterStoreOptions {
  readonly api: ApiClient
  readonly timers: Timers
  readonly namespace: string
  readonly owner: string
}

/** Stores records as DNSRecords of a namespace. */
export class ClusterRecordStore implements RecordStore {
  readonly #options: ClusterStoreOptions
  readonly #objects: Objects

  constructor(options: ClusterStoreOptions) {
    const { api, timers } = options
    this.#options = options
    this.#objects = new Objects({
      api,
      timers,
      fieldManager: 'sextant-webhook',
      timeoutMs: TIMEOUT_MS,
    })
  }

  list(): Promise<readonly KeptRecord[]> {
    const { api, timers, namespace, owner } = this.#options
    const selector = encodeURIComponent(`${OWNER_LABEL}=${owner}`)
    const path = `${collectionPath(RESOURCE, namespace)}?labelSelector=${selector}`
    return available(async () => {
      const records: KeptRecord[] = []
      const lister = new Lister(api, timers, path)
      const cancel = timers.after(TIMEOUT_MS, () => {
        lister.abort(new ApiError(0, `no complete list within ${TIMEOUT_MS / 1000} s`))
      })
      try {
        await lister.list((page) => records.push(...page.map(stored)))
      } finally {
        cancel()
      }
      return records
    })
  }

  get(name: string): Promise<KeptRecord | undefined> {
    return available(async () => {
      const object = await this.#objects.get(this.#ref(name))
      return object === undefined ? undefined : stored(object)
    })
  }

  write(name: string, record: ApiObject, before: KeptRecord | undefined): Promise<boolean> {
    return this.#unlessFaster(name, async () => {
      if (before === undefined) {
        await this.#objects.create(RESOURCE, this.#options.namespace, record)
      } else await this.#objects.replace(this.#ref(name), record)
    })
  }

  remove(name: string, { object, version }: KeptRecord): Promise<boolean> {
    const preconditions = { uid: textOf(object.metadata, 'uid'), resourceVersion: version }
    return this.#unlessFaster(name, () => this.#objects.delete(this.#ref(name), preconditions))
  }

  close(): void {
    this.#objects.close()
  }

  async #unlessFaster(name: string, write: () => Promise<unknown>): Promise<boolean> {
    try {
      await available(write)
      return true
    } catch (error) {
      const isFaster =
        isConflict(error) || isAlreadyThere(error) || isNotFound(error, this.#ref(name))
      if (isFaster) return false
      throw error
    }
  }

  #ref(name: string): ObjectRef {
    return { resource: RESOURCE, namespace: this.#options.namespace, name }
  }
}

function stored(object: ApiObject): KeptRecord {
  return { object, version: textOf(object.metadata, 'resourceVersion') }
}

/** Rejects with StoreUnavailable if the API server does not answer, or cannot serve now. */
async function available<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof Error)) throw error
    const status = error instanceof ApiError ? error.status : 0
    if (status === 0 || status === BUSY || status >= 500) {
      throw new StoreUnavailable(`the API server: ${error.message}`, { cause: error })
    }
    throw error
  }
}
