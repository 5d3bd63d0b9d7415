import { API_GROUP, API_VERSION } from '../../dnsrecord/dns-record.ts'
import { type ApiObject, type ApiResource, textOf } from '../../kube/api.ts'
import { isNotFound, type ObjectRef, type Objects } from '../../kube/objects.ts'
import type { Write, Writer } from '../plan/write.ts'
import { RECORD_FINALIZER } from '../record/labels.ts'
import { finalizersOf, metadataOf } from '../record/object.ts'
import type { RecordCache } from './record-cache.ts'

export const RECORDS: ApiResource = {
  group: API_GROUP,
  version: API_VERSION.slice(API_GROUP.length + 1),
  plural: 'dnsrecords',
}

export interface ApiWriterParts {
  readonly objects: Objects
  readonly cache: RecordCache
  /** False: another operator now holds the lease. */
  readonly mayWrite: () => boolean
  readonly onWrite: (kind: Write['kind']) => void
}

/** Thrown instead of writing when this process no longer holds the lease. */
export class NotLeadingError extends Error {
  constructor() {
    super('another operator has the lease')
    this.name = 'NotLeadingError'
  }
}

/**
 * Writes to the API. All writes except the removal of the finalizer use server-side apply: fields
 * of other managers are kept, and a repeated write changes nothing. Each write names the uid of its
 * object, so a new object with the same name is not touched.
 */
export class ApiWriter implements Writer {
  readonly #parts: ApiWriterParts

  constructor(parts: ApiWriterParts) {
    this.#parts = parts
  }

  async write(write: Write): Promise<void> {
    if (!this.#parts.mayWrite()) throw new NotLeadingError()
    await this.#write(write)
    this.#parts.onWrite(write.kind)
  }

  async #write(write: Write): Promise<void> {
    const { objects, cache } = this.#parts
    switch (write.kind) {
      case 'hold':
        return this.#apply(write.record, { finalizers: [RECORD_FINALIZER] })
      case 'leave':
        return this.#apply(write.record, {})
      case 'unhold':
        return this.#unhold(write.record)
      case 'apply':
        cache.noteWritten(await objects.apply(refOf(write.object), write.object))
        return
      case 'put':
        return this.#put(write.object, write.over)
      case 'drop': {
        const { object } = write
        const resourceVersion = versionOf(object)
        await objects.delete(refOf(object), { uid: uidOf(object), resourceVersion })
        cache.noteDeleted(object)
        return
      }
      case 'delete':
        await objects.delete(refOf(write.object), { uid: uidOf(write.object) })
        cache.noteDeleted(write.object)
        return
      case 'status': {
        const object = { ...identityOf(write.record, {}), status: write.status }
        cache.noteWritten(await objects.applyStatus(refOf(write.record), object))
      }
    }
  }

  async #apply(record: ApiObject, metadata: ApiObject): Promise<void> {
    const { objects, cache } = this.#parts
    cache.noteWritten(await objects.apply(refOf(record), identityOf(record, metadata)))
  }

  /**
   * Reads and writes an object that several reconcilers write to, without any step between the two.
   */
  async #put(object: ApiObject, over: ApiObject | undefined): Promise<void> {
    const { objects, cache } = this.#parts
    const { resource, namespace } = refOf(object)
    if (over === undefined) {
      cache.noteWritten(await objects.create(resource, namespace, object))
      return
    }
    const version = { uid: uidOf(over), resourceVersion: versionOf(over) }
    const exact = { ...object, metadata: { ...metadataOf(object), ...version } }
    cache.noteWritten(await objects.apply(refOf(object), exact))
  }

  /** Removes the finalizer, whichever field manager added it: no other process removes it later. */
  async #unhold(record: ApiObject): Promise<void> {
    const { objects, cache } = this.#parts
    const index = finalizersOf(record).indexOf(RECORD_FINALIZER)
    const path = `/metadata/finalizers/${index}`
    try {
      const after = await objects.patchSteps(refOf(record), [
        { op: 'test', path: '/metadata/uid', value: uidOf(record) },
        { op: 'test', path, value: RECORD_FINALIZER },
        { op: 'remove', path },
      ])
      if (finalizersOf(after).length === 0) cache.noteDeleted(after)
      else cache.noteWritten(after)
    } catch (error) {
      if (!isNotFound(error, refOf(record))) throw error
      cache.noteDeleted(record)
    }
  }
}

/** Reference to a DNSRecord. */
export function refOf(object: ApiObject): ObjectRef {
  const metadata = metadataOf(object)
  const [namespace, name] = [textOf(metadata, 'namespace'), textOf(metadata, 'name')]
  return { resource: RECORDS, namespace, name }
}

/** Fields that identify an existing record in an apply that changes only `metadata`. */
function identityOf(record: ApiObject, metadata: ApiObject): ApiObject {
  const { name, namespace, uid } = metadataOf(record)
  const identity = { name: name ?? '', namespace: namespace ?? '', uid: uid ?? '' }
  return { apiVersion: API_VERSION, kind: 'DNSRecord', metadata: { ...identity, ...metadata } }
}

function versionOf(object: ApiObject): string {
  return textOf(metadataOf(object), 'resourceVersion')
}

function uidOf(object: ApiObject): string {
  return textOf(metadataOf(object), 'uid')
}
