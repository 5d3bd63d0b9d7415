import type { RRsetData, ZoneId } from './types.ts'

/** Where readers find the arena in force; the writer replaces `buffer` when it has compacted. */
export interface ArenaHandle {
  buffer: SharedArrayBuffer
}

/** One RRset with its owner, as `rrsets` yields it. */
export interface OwnedRRset extends RRsetData {
  /** Lower-case wire form. */
  readonly owner: Uint8Array
}

/** Reads one published version of a zone image. Many may read one image, in any thread. */
export class ZoneReader {
  readonly handle: ArenaHandle
  /** Version that lookups see; taken anew by `refresh`. */
  version = 0

  constructor(handle: ArenaHandle) {
    this.handle = handle
  }

  /** Moves to the newest published version. Call once per query. */
  refresh(): void {}

  /** Zones of this version. Not for the hot path. */
  zones(): { id: ZoneId; apex: Uint8Array }[] {
    return []
  }

  /** Zone with exactly this apex (lower-case wire form), or undefined. Not for the hot path. */
  findZone(_apex: Uint8Array): ZoneId | undefined {
    return undefined
  }

  /** All RRsets of a zone, in no particular order of owners. Not for the hot path. */
  *rrsets(_zone: ZoneId): Generator<OwnedRRset> {}

  /** One RRset by exact owner and type, or undefined. Not for the hot path. */
  getRRset(_zone: ZoneId, _owner: Uint8Array, _type: number): RRsetData | undefined {
    return undefined
  }
}
