import type { Locator } from '../../geo/locator.ts'
import type { EndpointDrain, RecordDrains } from '../../health/drain/drain.ts'
import type { HealthView } from '../../health/health-table.ts'
import type { RecordSource, StoredRecord } from '../../records/record-source.ts'
import type { ZoneOwnership } from '../../sources/zone-ownership.ts'
import type { RecordZone } from '../build/record-zone.ts'
import type { PublishOptions } from '../options.ts'

/** The zones of one publisher, and what they are built from. */
export interface PreviewScope {
  /** As `placeOf` returns it for the server block. */
  readonly place: string
  readonly options: PublishOptions
  readonly ownership: ZoneOwnership
  readonly locator: Locator | undefined
  /** `key`: `nameKey` of the apex. */
  readonly zones: readonly {
    readonly apex: Uint8Array
    readonly key: string
    readonly records: RecordZone
  }[]
  /** The records that the zones serve. */
  readonly records: RecordSource
  /** Our own records: those of the source that this site may serve, before they are merged with those of peers. */
  readonly own: RecordSource
  readonly health: HealthView
  /** As `DrainColumn.drainsWith`. */
  drainsWith(
    record: StoredRecord,
    begun: readonly EndpointDrain[],
    isEnded: (drain: EndpointDrain) => boolean,
  ): RecordDrains
}

/** The zones in service whose changes can be previewed. */
export class PreviewIndex {
  readonly #scopes = new Set<PreviewScope>()

  /** Returns the function that removes it. */
  add(scope: PreviewScope): () => void {
    this.#scopes.add(scope)
    return () => this.#scopes.delete(scope)
  }

  /** One for each server block: during a reload, that of the new instance. */
  get scopes(): readonly PreviewScope[] {
    return [...new Map([...this.#scopes].map((scope) => [scope.place, scope])).values()]
  }
}
