import { nameKey, parentName } from '../dns/name/name.ts'
import type { Fallthrough } from '../plugin/arguments/fallthrough.ts'
import type { BlockConfig } from '../plugin/directive.ts'

/** Directives that can answer for names that a zone of a directive behind them lacks. */
const EARLIER = ['rewrite', 'template', 'hosts', 'kuadrant', 'k8s_external', 'kubernetes', 'file']

interface WholeZoneOptions {
  /** Its name. */
  readonly directive: string
  readonly block: Pick<BlockConfig, 'directives'>
  readonly fallthrough: Fallthrough
  /** All zones of the directive. */
  readonly zones: readonly Uint8Array[]
}

/**
 * Returns whether a name of a zone that its data lack does not exist, because nothing else of the server block can
 * have it.
 */
export function findWholeZones({
  directive,
  block,
  fallthrough,
  zones,
}: WholeZoneOptions): (zone: Uint8Array) => boolean {
  const before = block.directives.slice(0, block.directives.indexOf(directive))
  const isAlone = !before.some((name) => EARLIER.includes(name))
  let parents: Set<string> | undefined
  return (zone) => {
    if (!isAlone || fallthrough.touches(zone)) return false
    parents ??= parentsOf(zones)
    return !parents.has(nameKey(zone))
  }
}

/** Returns the keys of all names above one of the zones. */
function parentsOf(zones: readonly Uint8Array[]): Set<string> {
  const parents = new Set<string>()
  for (const zone of zones) {
    for (let name = zone; name.length > 1; ) {
      name = parentName(name)
      parents.add(nameKey(name))
    }
  }
  return parents
}
