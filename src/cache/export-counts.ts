import { printName } from '../dns/name/name.ts'
import { collectWhileServing } from '../plugin/collect.ts'
import type { CounterSlots } from '../plugin/counter-slots.ts'
import type { DirectivePart } from '../plugin/description.ts'
import type { SetupContext } from '../plugin/directive.ts'
import type { ZoneSet } from '../zone/lookup/zone-set.ts'
import { CacheCount, type CacheSource } from './cache.ts'

const evictionsOf = {
  success: CacheCount.SuccessEvictions,
  denial: CacheCount.DenialEvictions,
} as const

/** Exports the counts of a cache while the instance serves. */
export function exportCounts(
  c: SetupContext,
  zoneSet: ZoneSet,
  slots: CounterSlots,
  source: CacheSource,
): DirectivePart {
  const zones = zoneSet.zones.map((zone) => printName(zone)).join(',')
  const labels = ['server', 'zones', 'view'] as const
  const typed = ['server', 'type', 'zones', 'view'] as const
  const counter = (name: string, help: string) =>
    c.metrics.counter(`coredns_cache_${name}`, help, labels)
  const plain = [
    { index: CacheCount.Requests, of: counter('requests_total', 'The count of cache requests.') },
    { index: CacheCount.Misses, of: counter('misses_total', 'The count of cache misses.') },
    {
      index: CacheCount.Prefetches,
      of: counter('prefetch_total', 'The number of times the cache has prefetched a cached item.'),
    },
    {
      index: CacheCount.ServedStale,
      of: counter('served_stale_total', 'The number of requests served from stale cache entries.'),
    },
  ]
  const hits = c.metrics.counter('coredns_cache_hits_total', 'The count of cache hits.', typed)
  const entries = c.metrics.gauge(
    'coredns_cache_entries',
    'The number of elements in the cache.',
    typed,
  )
  const evictions = c.metrics.counter(
    'coredns_cache_evictions_total',
    'The count of cache evictions.',
    typed,
  )
  return collectWhileServing(c, () => {
    slots.forEach((counts, { server, view }) => {
      for (const { index, of } of plain) of.inc({ server, zones, view }, counts.take(index))
      hits.inc({ server, type: 'success', zones, view }, counts.take(CacheCount.SuccessHits))
      hits.inc({ server, type: 'denial', zones, view }, counts.take(CacheCount.DenialHits))
      for (const type of ['success', 'denial'] as const) {
        entries.set({ server, type, zones, view }, source.stores?.[type].entries ?? 0)
        evictions.inc({ server, type, zones, view }, counts.take(evictionsOf[type]))
      }
    })
  })
}
