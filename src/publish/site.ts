import type { KuadrantOptions } from '../plugins/kuadrant/options.ts'
import { nameOf } from './source-place.ts'

/**
 * Returns the site name: from the block, or from another block of the same source; '' = no name.
 */
export function siteOf(options: KuadrantOptions, all: readonly KuadrantOptions[]): string {
  if (options.site !== '') return options.site
  const others = all.filter((other) => nameOf(other.source) === nameOf(options.source))
  return others.find(({ site }) => site !== '')?.site ?? ''
}
