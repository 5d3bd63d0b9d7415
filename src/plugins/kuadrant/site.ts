import type { KuadrantOptions } from './options.ts'
import { nameOf } from './source-place.ts'

/** What the site is called: as the block says, or another over the same source; '' = it has no name. */
export function siteOf(options: KuadrantOptions, all: readonly KuadrantOptions[]): string {
  if (options.site !== '') return options.site
  const others = all.filter((other) => nameOf(other.source) === nameOf(options.source))
  return others.find(({ site }) => site !== '')?.site ?? ''
}
