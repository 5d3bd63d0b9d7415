import type { Clock } from '../../base/clock.ts'
import { LocalTeller } from '../../peering/local-teller.ts'
import type { SharedSource } from '../../record/source-sharing.ts'
import type { KuadrantOptions } from './options.ts'
import { nameOf } from './source-place.ts'

const tellers = new WeakMap<SharedSource, Map<string, LocalTeller>>()

/** Who tells the records of a source as those of `site`: one for all zones, and over reloads. */
export function tellerOf(shared: SharedSource, site: string, clock: Clock): LocalTeller {
  const bySite = tellers.get(shared) ?? new Map<string, LocalTeller>()
  tellers.set(shared, bySite)
  const teller = bySite.get(site) ?? new LocalTeller(site, clock)
  bySite.set(site, teller)
  return teller
}

/** What the site is called: as the block says, or another over the same source; '' = it has no name. */
export function siteOf(options: KuadrantOptions, all: readonly KuadrantOptions[]): string {
  if (options.site !== '') return options.site
  const others = all.filter((other) => nameOf(other.source) === nameOf(options.source))
  return others.find(({ site }) => site !== '')?.site ?? ''
}
