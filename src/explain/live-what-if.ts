import type { Clock } from '../base/clock.ts'
import { InputError } from '../base/errors.ts'
import { runInSlices } from '../base/slices.ts'
import type { ClassTrieData } from '../geo/class-trie.ts'
import type { ClassCell } from '../geo/classes/class-cells.ts'
import { runJobInThread } from '../geo/worker/run-job.ts'
import type { WhatIfOrder, WhatIfReply } from '../plugin/admin-what-if.ts'
import { placeOf } from '../plugin/block-place.ts'
import type { PreviewIndex, PreviewScope } from '../publish/preview/preview-index.ts'
import { ZonePreview } from '../publish/preview/zone-preview.ts'
import type { Instance } from '../server/instance.ts'
import { CellShares } from './cell-shares.ts'
import { NameComparison } from './compare-names.ts'
import { PlacedLocator } from './placed-locator.ts'
import { jsonOfWhatIf } from './print-what-if.ts'
import { type ScannedChange, scanWhatIfOrder } from './scan-what-if.ts'
import { ServedNames } from './served-names.ts'
import { byShare, type MeasuredChange, placesOf, printKeys } from './what-if.ts'

/** Changes that a reply lists. */
const CHANGES_MAX = 100
/** Longest time for finding the records of a change: the client waits. */
const FIND_MS_MAX = 5000

/** Compares what the zones in service answer with what they would answer after a change. */
export class LiveWhatIf {
  readonly #instance: Instance
  readonly #index: PreviewIndex
  readonly #clock: Clock

  constructor(instance: Instance, index: PreviewIndex) {
    this.#instance = instance
    this.#index = index
    this.#clock = instance.parts.clock
  }

  /** Rejects with InputError if the order is invalid, or concerns too much. */
  async compare(order: WhatIfOrder): Promise<WhatIfReply> {
    const { scopes } = this.#index
    const change = await scanWhatIfOrder(order, scopes, this.#clock)
    const found: MeasuredChange[] = []
    const nameCount = { before: 0, after: 0 }
    let [records, recordsOmitted] = [0, 0]
    for (const scope of scopes) {
      const preview = await this.#preview(scope, change)
      records += preview.changedCount
      recordsOmitted += preview.omitted
      if (preview.changedCount === 0) continue
      const { changes, before, after } = await this.#compareScope(preview)
      found.push(...changes)
      nameCount.before += before
      nameCount.after += after
    }
    const changes = found.sort(byShare).slice(0, CHANGES_MAX)
    const { names, changes: listed } = jsonOfWhatIf({ changes, nameCount })
    const omitted = { recordsOmitted, changesOmitted: found.length - changes.length }
    return { records, names, changes: listed, ...omitted, notes: change.notes }
  }

  async #preview(scope: PreviewScope, change: ScannedChange): Promise<ZonePreview> {
    const preview = new ZonePreview(scope, change)
    await runInSlices(within(preview.find(), this.#clock), this.#clock)
    return preview
  }

  async #compareScope(preview: ZonePreview) {
    const { locator, place } = preview.scope
    const placed = locator && new PlacedLocator(locator)
    const [old, next] = await ServedNames.buildPreview(preview, placed, this.#clock)
    const places = await placesOf(old, placed, runJobInThread)
    const cells = await measure([old.table.trie.data, next.table.trie.data, places.data])
    const shares = new CellShares(cells, places.codesOf)
    const comparison = new NameComparison(old, next, cells)
    const block = this.#blockOf(place)
    const changes: MeasuredChange[] = []
    for (const change of await runInSlices(comparison.changesInSteps(), this.#clock)) {
      changes.push({ ...change, block, shares: shares.of(change.clients) })
    }
    return { changes, before: old.names.size, after: next.names.size }
  }

  /** Returns the keys of the server block at a place. */
  #blockOf(place: string): string {
    const block = this.#instance.configs.find((config) => placeOf(config) === place)
    return block === undefined ? place : printKeys(block)
  }
}

async function measure(tries: readonly ClassTrieData[]): Promise<readonly ClassCell[]> {
  const { cells = [] } = await runJobInThread({ kind: 'measure', tries })
  return cells
}

/** Ends work that takes too long. */
export function* within(work: Generator<void>, clock: Clock): Generator<void> {
  const endMs = clock.monotonic() + FIND_MS_MAX
  for (const pause of work) {
    if (clock.monotonic() > endMs) {
      throw new InputError(undefined, 'the server has too many records to compare in time')
    }
    yield pause
  }
}
