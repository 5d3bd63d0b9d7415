import type { Clock } from '../../base/clock.ts'
import { runInSlices } from '../../base/slices.ts'
import { RRType } from '../../dns/iana/types.ts'
import type { WhatIfOrder } from '../../plugin/admin-what-if.ts'
import type { RecordZone } from '../../publish/build/record-zone.ts'
import type { RRsetSink } from '../../publish/build/record-zone-options.ts'
import type { PreviewIndex } from '../../publish/preview/preview-index.ts'
import { ZonePreview } from '../../publish/preview/zone-preview.ts'
import { lowerNameKey } from '../../records/validate/names.ts'
import { buildSet } from '../endpoints.ts'
import { within } from '../live-what-if.ts'
import { scanWhatIfOrder } from '../scan-what-if.ts'
import type { MapPreview } from './map-preview.ts'
import { builtSet, emptySet } from './map-set.ts'

const NO_SINK: RRsetSink = { put: () => {}, remove: () => {}, declare: () => {} }

/** Resolves to the answers after a change. Rejects with InputError if the order is invalid, or concerns too much. */
export async function openChangePreview(
  order: WhatIfOrder,
  index: PreviewIndex,
  clock: Clock,
): Promise<MapPreview> {
  const change = await scanWhatIfOrder(order, index.scopes, clock)
  const omitted: string[] = []
  const changed = new Map<RecordZone, { preview: ZonePreview; records: RecordZone }>()
  let count = 0
  for (const scope of index.scopes) {
    const preview = new ZonePreview(scope, change)
    await runInSlices(within(preview.find(), clock), clock)
    count += preview.changedCount
    if (preview.changedCount === 0) continue
    if (preview.omitted > 0) omitted.push(`${preview.omitted} records are not compared`)
    await runInSlices(
      preview.fill(() => NO_SINK),
      clock,
    )
    await runInSlices(preview.apply(), clock)
    for (const { key, records } of preview.zones) {
      const served = scope.zones.find((zone) => zone.key === key)
      if (served !== undefined) changed.set(served.records, { preview, records })
    }
  }
  const records = count === 1 ? '1 record changes' : `${count} records change`
  return {
    text: `${printOrder(order)}: ${records}`,
    notes: [...change.notes, ...omitted],
    isPast: false,
    setOf: (name, type, served, { records: zone, serial }) => {
      const found = changed.get(zone)
      if (found === undefined) return served
      const { zones, owner: now } = served
      // A name of the change comes before a wildcard.
      const owner = found.records.holders.of(lowerNameKey(name)).length > 0 ? name : now
      if (!found.preview.concerns(lowerNameKey(owner)) || zones === undefined) return served
      const explainable = { records: found.records, serial }
      for (const wanted of new Set([type, RRType.CNAME])) {
        const built = buildSet(explainable, owner, wanted)
        const set = built.endpoints.length > 0 && builtSet(owner, wanted, zones, built)
        if (set) return set
      }
      return emptySet(owner, type, zones, buildSet(explainable, owner, type))
    },
  }
}

function printOrder({ drain, undrain, shift }: WhatIfOrder): string {
  if (drain !== undefined) return `after the drain ${drain}`
  if (undrain !== undefined) return `after the end of the drain ${undrain}`
  if (shift === undefined) return 'with the manifests'
  const { name, to, percent } = shift
  return percent === undefined
    ? `without a shift of ${name}`
    : `after a shift of ${name} to ${to} (${percent} %)`
}
