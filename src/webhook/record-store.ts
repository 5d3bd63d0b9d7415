import type { ApiObject } from '../kube/api.ts'

/** A stored record. */
export interface KeptRecord {
  readonly object: ApiObject
  /** Differs after each write. */
  readonly version: string
}

/** The place of the records is not available now: the request may be repeated. */
export class StoreUnavailable extends Error {}

/** Where the records are. Methods reject with StoreUnavailable, or with another error if the store refuses. */
export interface RecordStore {
  /** Returns the records of our owner. */
  list(): Promise<readonly KeptRecord[]>
  /** Returns the record of that name, of any owner; undefined = it does not exist. */
  get(name: string): Promise<KeptRecord | undefined>
  /**
   * Writes a record. `before`: the version that it replaces; undefined = none. Returns false if another writer was
   * faster.
   */
  write(name: string, record: ApiObject, before: KeptRecord | undefined): Promise<boolean>
  /** Removes a record. Returns false if another writer was faster. */
  remove(name: string, before: KeptRecord): Promise<boolean>
}
