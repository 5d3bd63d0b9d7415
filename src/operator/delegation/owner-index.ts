import type { Informer } from '../../kube/informer.ts'
import { DnsRecordView } from '../record/record-view.ts'
import { authoritativeKey } from './authoritative-record.ts'

/** A delegating record of some cluster. */
interface Owner {
  readonly uid: string
  readonly created: string
  /** `namespace/name`, and the cluster of the record. */
  readonly text: string
}

/** Reports whether another record has the owner id of a record. */
export interface Owners {
  /** The older record that `record` must give way to, as text; '' = none. */
  rivalOf(record: DnsRecordView): string
  /** True if a delegating record of some cluster has that owner id. */
  isPresent(authoritativeKey: string, ownerId: string): boolean
}

/**
 * The owners of each authoritative record by owner id, over all clusters. Owner ids are derived
 * from UIDs, but a record may set its own, so one manifest in two clusters gives both records the
 * same id. The older record then keeps the id, whichever operator decides. Otherwise the two would
 * overwrite each other forever. That's why the dates count as they are written, even if the clock of
 * an API server is known to be wrong: each operator measures clocks by its own, so two operators
 * would disagree.
 */
export class OwnerIndex implements Owners {
  /** By key of the authoritative record and owner id, then by UID. */
  readonly #owners = new Map<string, Map<string, Owner>>()
  readonly #listeners = new Set<(authoritativeKey: string) => void>()

  /**
   * Indexes the records of a cluster. `cluster`: '' = this one. The returned function unsubscribes.
   */
  watch(records: Pick<Informer, 'subscribe' | 'objects'>, cluster: string): () => void {
    const place = cluster === '' ? '' : ` of cluster ${cluster}`
    const end = records.subscribe({
      onAdd: (key, object) => this.#add(new DnsRecordView(object), key + place),
      onUpdate: (key, object, before) => {
        this.#remove(new DnsRecordView(before))
        this.#add(new DnsRecordView(object), key + place)
      },
      onDelete: (_, before) => {
        const record = new DnsRecordView(before)
        this.#remove(record)
        if (record.role !== 'delegating') return
        for (const listener of this.#listeners) listener(authoritativeKey(record))
      },
    })
    return () => {
      end()
      for (const object of records.objects()) this.#remove(new DnsRecordView(object))
    }
  }

  /**
   * Calls back with the key of the authoritative record when an owner is removed. The returned
   * function unsubscribes.
   */
  onGone(listener: (authoritativeKey: string) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  rivalOf(record: DnsRecordView): string {
    const { uid, created } = record
    for (const other of this.#owners.get(idOf(record))?.values() ?? []) {
      const isOlder = other.created < created || (other.created === created && other.uid < uid)
      if (other.uid !== uid && isOlder) return other.text
    }
    return ''
  }

  isPresent(authoritativeKey: string, ownerId: string): boolean {
    return this.#owners.has(`${authoritativeKey} ${ownerId}`)
  }

  #add(record: DnsRecordView, text: string): void {
    if (record.role !== 'delegating') return
    const id = idOf(record)
    const { uid, created } = record
    const owners = this.#owners.get(id) ?? new Map<string, Owner>()
    this.#owners.set(id, owners.set(uid, { uid, created, text }))
  }

  #remove(record: DnsRecordView): void {
    if (record.role !== 'delegating') return
    const id = idOf(record)
    const owners = this.#owners.get(id)
    owners?.delete(record.uid)
    if (owners?.size === 0) this.#owners.delete(id)
  }
}

function idOf(record: DnsRecordView): string {
  return `${authoritativeKey(record)} ${record.ownerId}`
}
