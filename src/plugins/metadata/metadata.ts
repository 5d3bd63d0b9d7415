import type { MetadataProvider } from '../../plugin/metadata.ts'
import { ZoneSet } from '../../zone/lookup/zone-set.ts'

/** Makes every provider return '' for names outside `zones` (lower-case wire form). */
export function limitToZones(
  providers: Map<string, MetadataProvider>,
  zones: readonly Uint8Array[],
): void {
  const set = new ZoneSet(zones)
  for (const [label, provide] of providers) {
    providers.set(label, (tx) => (set.match(tx.query) === -1 ? '' : provide(tx)))
  }
}
