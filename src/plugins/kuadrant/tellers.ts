import type { Clock } from '../../base/clock.ts'
import { RefCounted } from '../../base/ref-counted.ts'
import { LocalTeller } from '../../peering/local-teller.ts'
import { UntoldRecords } from '../../peering/untold.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import type { RefCountedSource } from '../../record/ref-counted-source.ts'
import type { StoredRecord } from '../../record/source.ts'
import type { KuadrantOptions } from './options.ts'
import { nameOf } from './source-place.ts'
import { isAllowed } from './zone-content.ts'

const tellers = new WeakMap<RefCountedSource, Map<string, LocalTeller>>()

/** Who tells the records of a source as those of `site`: one for all zones, and over reloads. */
export function tellerOf(shared: RefCountedSource, site: string, clock: Clock): LocalTeller {
  const bySite = tellers.get(shared) ?? new Map<string, LocalTeller>()
  tellers.set(shared, bySite)
  const teller = bySite.get(site) ?? new LocalTeller(site, clock)
  bySite.set(site, teller)
  return teller
}

const untold = new RefCounted<UntoldRecords>((records) => records.close())

/**
 * Has the log say what a site can't tell of its records: once for all blocks that tell the same of them, and over
 * reloads. The returned function ends it.
 */
export function watchUntold(
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
  return untold.acquire(key, () => new UntoldRecords({ source, allows, site, log, clock })).release
}
