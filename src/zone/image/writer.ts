import { type ArenaHandle, ZoneReader } from './reader.ts'
import type { RRsetData, ZoneId } from './types.ts'

/** Sizes of a zone image; all have defaults. */
export interface ZoneImageOptions {
  /** First size of the arena. */
  readonly initialOctets?: number
  /** Address space to reserve: the arena never grows beyond it. At most 4 GB. */
  readonly maxOctets?: number
  /** Garbage below this is never worth a compaction. */
  readonly compactOctets?: number
}

/** The only writer of a zone image. Nothing is seen by readers before `publish`. */
export class ZoneImage {
  readonly handle: ArenaHandle = { buffer: new SharedArrayBuffer(0) }

  constructor(_options: ZoneImageOptions = {}) {}

  /** Adds an empty zone. `apex`: lower-case wire form. To replace a zone: remove, add, publish. */
  addZone(_apex: Uint8Array): ZoneId {
    return 0
  }

  removeZone(_zone: ZoneId): void {}

  /** Zone with this apex, unpublished changes included; undefined if none. */
  findZone(_apex: Uint8Array): ZoneId | undefined {
    return undefined
  }

  /** Adds or replaces one RRset. False if it was there already, equal in all. */
  putRRset(_zone: ZoneId, _owner: Uint8Array, _data: RRsetData): boolean {
    return false
  }

  /** False if there was none. */
  removeRRset(_zone: ZoneId, _owner: Uint8Array, _type: number): boolean {
    return false
  }

  /** Makes all changes since the last publish visible at once; returns the new version. */
  publish(): number {
    return 0
  }

  reader(): ZoneReader {
    return new ZoneReader(this.handle)
  }
}
