import type { ApiObject } from '../../kube/api.ts'
import { isNotFound, type ObjectRef, type Objects } from '../../kube/objects.ts'
import { API_VERSION } from '../../records/dns-record.ts'
import type { Write, Writer } from '../plan/write.ts'
import { type DesiredRecord, printRecord } from '../record/desired-record.ts'
import { finalizersOf, metadataOf } from '../record/fields.ts'
import { RECORD_FINALIZER } from '../record/labels.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { RECORDS } from '../record/resources.ts'
import { annotationsOf } from '../record/sites-annotation.ts'
import type { ObjectCache } from './object-cache.ts'

interface ApiWriterParts {
  readonly objects: Objects
  readonly cache: ObjectCache
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
        return this.#applyMetadata(write.record, {
          finalizers: [RECORD_FINALIZER],
          ...(write.report === '' ? {} : { annotations: annotationsOf(write.report) }),
        })
      case 'leave':
        return this.#applyMetadata(write.record, {})
      case 'unhold':
        return this.#unhold(write.record)
      case 'apply':
        return this.#applyRecord(write.record)
      case 'put':
        return this.#put(write.record, write.over)
      case 'drop': {
        const { uid, resourceVersion } = write.record
        return this.#delete(write.record, { uid, resourceVersion })
      }
      case 'delete':
        return this.#delete(write.record, { uid: write.record.uid })
      case 'status': {
        const object = { ...identityOf(write.record, {}), status: write.status }
        cache.noteWritten(await objects.applyStatus(refOf(write.record), object))
      }
    }
  }

  async #applyMetadata(record: DnsRecordView, metadata: ApiObject): Promise<void> {
    const { objects, cache } = this.#parts
    cache.noteWritten(await objects.apply(refOf(record), identityOf(record, metadata)))
  }

  async #applyRecord(record: DesiredRecord): Promise<void> {
    const { objects, cache } = this.#parts
    cache.noteWritten(await objects.apply(refOf(record), printRecord(record)))
  }

  /**
   * Reads and writes an object that several reconcilers write to, without any step between the two.
   */
  async #put(record: DesiredRecord, over: DnsRecordView | undefined): Promise<void> {
    const { objects, cache } = this.#parts
    const object = printRecord(record)
    if (over === undefined) {
      cache.noteWritten(await objects.create(RECORDS, record.namespace, object))
      return
    }
    const { uid, resourceVersion } = over
    const exact = { ...object, metadata: { ...metadataOf(object), uid, resourceVersion } }
    cache.noteWritten(await objects.apply(refOf(record), exact))
  }

  async #delete(
    record: DnsRecordView,
    version: { readonly uid: string; readonly resourceVersion?: string },
  ): Promise<void> {
    await this.#parts.objects.delete(refOf(record), version)
    this.#parts.cache.noteDeleted(record.object)
  }

  /** Removes the finalizer, whichever field manager added it: no other process removes it later. */
  async #unhold(record: DnsRecordView): Promise<void> {
    const { objects, cache } = this.#parts
    const path = `/metadata/finalizers/${record.finalizers.indexOf(RECORD_FINALIZER)}`
    try {
      const after = await objects.patchSteps(refOf(record), [
        { op: 'test', path: '/metadata/uid', value: record.uid },
        { op: 'test', path, value: RECORD_FINALIZER },
        { op: 'remove', path },
      ])
      if (finalizersOf(after).length === 0) cache.noteDeleted(after)
      else cache.noteWritten(after)
    } catch (error) {
      if (!isNotFound(error, refOf(record))) throw error
      cache.noteDeleted(record.object)
    }
  }
}

/** Reference to a DNSRecord. */
export function refOf({ namespace, name }: Pick<DesiredRecord, 'namespace' | 'name'>): ObjectRef {
  return { resource: RECORDS, namespace, name }
}

/** Fields that identify an existing record in an apply that changes only `metadata`. */
function identityOf({ name, namespace, uid }: DnsRecordView, metadata: ApiObject): ApiObject {
  const identity = { name, namespace, uid }
  return { apiVersion: API_VERSION, kind: 'DNSRecord', metadata: { ...identity, ...metadata } }
}
