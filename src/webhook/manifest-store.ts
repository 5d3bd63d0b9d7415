import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { NextFile } from '../base/persist/next-file.ts'
import { stampOf } from '../base/stat.ts'
import { isSystemError } from '../base/system-error.ts'
import { type ApiObject, isObject } from '../kube/api.ts'
import { parseJson } from '../kube/read-body.ts'
import { isOwned } from './host-record.ts'
import { type KeptRecord, type RecordStore, StoreUnavailable } from './record-store.ts'

const ENDING = '.json'
/** Files in which the name of a record of a webhook can be. */
const FILE = /-webhook-[0-9a-f]{10}\.json$/
const MODE = 0o644

/** Stores each record as a manifest `NAME.json` in a directory. A file is always complete. */
export class FileRecordStore implements RecordStore {
  readonly #directory: string
  readonly #owner: string

  constructor(directory: string, owner: string) {
    this.#directory = directory
    this.#owner = owner
  }

  async list(): Promise<readonly KeptRecord[]> {
    const records: KeptRecord[] = []
    for (const file of available(() => readdirSync(this.#directory)).sort()) {
      if (!FILE.test(file)) continue
      const found = this.#read(file)
      if (found !== undefined && isOwned(found.object, this.#owner)) records.push(found)
    }
    return records
  }

  async get(name: string): Promise<KeptRecord | undefined> {
    return this.#read(name + ENDING)
  }

  async write(name: string, record: ApiObject, before: KeptRecord | undefined): Promise<boolean> {
    return available(() => {
      const file = new NextFile(join(this.#directory, name + ENDING), MODE)
      try {
        file.write(`${JSON.stringify(record, undefined, 2)}\n`)
        file.sync()
        return file.put(before?.version ?? '') !== undefined
      } finally {
        file.close()
      }
    })
  }

  async remove(name: string, before: KeptRecord): Promise<boolean> {
    return available(() => {
      const path = join(this.#directory, name + ENDING)
      if (stampOf(path) !== before.version) return false
      rmSync(path)
      return true
    })
  }

  #read(file: string): KeptRecord | undefined {
    const path = join(this.#directory, file)
    return available(() => {
      const version = stampOf(path)
      if (version === '') return undefined
      const object = parseJson(readFileSync(path, 'utf8'), path)
      return isObject(object) ? { object, version } : undefined
    })
  }
}

/** Throws StoreUnavailable for an error of the system. */
function available<T>(run: () => T): T {
  try {
    return run()
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw new StoreUnavailable(error.message, { cause: error })
  }
}
