import type { ApiObject } from '../kube/api.ts'

/** A stored record. */
export interface StoredRecord {
  readonly object: ApiObject
  /** Differs after each write. */
  readonly version: string
}

/** The place of the records is not available now: the request may be repeated. */
export class StoreUnavailable extends Error {}

/** Where the records are. Methods reject with StoreUnavailable, or with another error if the store refuses. */
export interface RecordStore {
  /** Returns the records of our owner. */
  list(): Promise<readonly StoredRecord[]>
  /** Returns the record of that name, of any owner; undefined = it does not exist. */
  get(name: string): Promise<StoredRecord | undefined>
  /**
   * Writes a record. `before`: the version that it replaces; undefined = none. Returns false if another writer was
   * faster.
   */
  write(name: string, record: ApiObject, before: StoredRecord | undefined): Promise<boolean>
  /** Removes a record. Returns false if another writer was faster. */
  remove(name: string, before: StoredRecord): Promise<boolean>
}
