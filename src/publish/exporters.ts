import type { Clock } from '../base/clock.ts'
import { RefCounted } from '../base/ref-counted.ts'
import { LocalExporter } from '../peering/local-exporter.ts'
import { UnexportableRecords } from '../peering/unexportable.ts'
import type { SetupContext } from '../plugin/directive.ts'
import type { KuadrantOptions } from '../plugins/kuadrant/options.ts'
import type { RefCountedSource } from '../sources/ref-counted-source.ts'
import type { StoredRecord } from '../sources/source.ts'
import { nameOf } from './source-place.ts'
import { isAllowed } from './zone-content.ts'

const exporters = new WeakMap<RefCountedSource, Map<string, LocalExporter>>()

/** Returns the exporter of a source's records for `site`: one for all zones, and over reloads. */
export function exporterOf(shared: RefCountedSource, site: string, clock: Clock): LocalExporter {
  const bySite = exporters.get(shared) ?? new Map<string, LocalExporter>()
  exporters.set(shared, bySite)
  const exporter = bySite.get(site) ?? new LocalExporter(site, clock)
  bySite.set(site, exporter)
  return exporter
}

const unexportable = new RefCounted<UnexportableRecords>((records) => records.close())

/**
 * Logs which records a site can't export: once for all blocks that export the same records, and
 * over reloads. The returned function stops it.
 */
export function watchUnexportable(
  shared: RefCountedSource,
  site: string,
  options: KuadrantOptions,
  { log, clock }: Pick<SetupContext, 'log' | 'clock'>,
): () => void {
  const { allowedNamespaces, source: place } = options
  const namespaces = allowedNamespaces === undefined ? undefined : [...allowedNamespaces].sort()
  const key = JSON.stringify([nameOf(place), site, namespaces])
  const { source } = shared
  const allows = (record: StoredRecord): boolean => isAllowed(record, options)
  return unexportable.acquire(
    key,
    () => new UnexportableRecords({ source, allows, site, log, clock }),
  ).release
}
