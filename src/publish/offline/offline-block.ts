import { key } from '../../base/shared-values.ts'
import type { BlockConfig } from '../../plugin/directive.ts'
import type { RecordZone } from '../build/record-zone.ts'
import type { OpenZones } from '../serve/threaded-zones.ts'
import type { OfflineRecords } from './offline-records.ts'
import type { OfflineZones } from './offline-zones.ts'

/** For a command that serves nothing: the records of the server blocks, and the blocks that have read theirs. */
interface OfflinePlace {
  readonly records: OfflineRecords
  readonly blocks: OfflineBlock[]
}

export const OFFLINE_PLACE = key<OfflinePlace>('records of a command that serves nothing')

/** The zones of a `kuadrant` directive, for a command that serves nothing. */
export interface OfflineBlock {
  readonly block: BlockConfig
  readonly zones: OfflineZones
  /**
   * Fills the zones, and makes the chain of the block answer from them, in this thread. Call it once.
   * Rejects with an InputError if the records or the database can't be read.
   */
  serve(): Promise<OfflineService>
}

/** The zones of a block once they answer. */
export interface OfflineService extends OpenZones {
  /** By `nameKey` of the apex. */
  readonly zones: ReadonlyMap<string, RecordZone>
}
