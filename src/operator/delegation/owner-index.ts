import { type ApiObject, textOf } from '../../kube/api.ts'
import type { Informer } from '../../kube/informer.ts'
import { isDelegating } from '../plan/decide.ts'
import { metadataOf } from '../record/object.ts'
import { ownerIdOf } from '../status/status.ts'
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
  /** The older record that `object` must give way to, as text; '' = none. */
  rivalOf(object: ApiObject): string
}

/**
 * The owners of each authoritative record by owner id, over all clusters. Owner ids are derived
 * from UIDs, but a record may set its own, so one manifest in two clusters gives both records the
 * same id. The older record then keeps the id, whichever operator decides. Otherwise the two would
 * overwrite each other forever.
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
      onAdd: (key, record) => this.#add(record, key + place),
      onUpdate: (key, record, before) => {
        this.#remove(before)
        this.#add(record, key + place)
      },
      onDelete: (_, before) => {
        this.#remove(before)
        if (!isDelegating(before)) return
        for (const listener of this.#listeners) listener(authoritativeKey(before))
      },
    })
    return () => {
      end()
      for (const record of records.objects()) this.#remove(record)
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

  rivalOf(object: ApiObject): string {
    const { uid, created } = ownerOf(object, '')
    for (const other of this.#owners.get(idOf(object))?.values() ?? []) {
      const isOlder = other.created < created || (other.created === created && other.uid < uid)
      if (other.uid !== uid && isOlder) return other.text
    }
    return ''
  }

  #add(record: ApiObject, text: string): void {
    if (!isDelegating(record)) return
    const id = idOf(record)
    const owner = ownerOf(record, text)
    const owners = this.#owners.get(id)
    if (owners === undefined) this.#owners.set(id, new Map([[owner.uid, owner]]))
    else owners.set(owner.uid, owner)
  }

  #remove(record: ApiObject): void {
    if (!isDelegating(record)) return
    const id = idOf(record)
    const owners = this.#owners.get(id)
    owners?.delete(textOf(metadataOf(record), 'uid'))
    if (owners?.size === 0) this.#owners.delete(id)
  }
}

function idOf(record: ApiObject): string {
  return `${authoritativeKey(record)} ${ownerIdOf(record)}`
}

function ownerOf(record: ApiObject, text: string): Owner {
  const metadata = metadataOf(record)
  return {
    uid: textOf(metadata, 'uid'),
    created: textOf(metadata, 'creationTimestamp'),
    text,
  }
}
