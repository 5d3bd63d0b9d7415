import type { ExplainableZone } from '../../publish/explainable.ts'
import type { MapSet } from './map-set.ts'

/** Shows other answers than the present ones. */
export interface MapPreview {
  /** What the map shows. */
  readonly text: string
  /**
   * Returns the RRset to show in place of the one that is served for a name, in lower-case wire form. `type`: of the
   * question.
   */
  setOf(name: Uint8Array, type: number, served: MapSet, zone: ExplainableZone): MapSet
  /** True: remarks on the present do not apply. */
  readonly isPast: boolean
  /** What the preview leaves out. Complete when the sets are known. */
  readonly notes: Iterable<string>
}
