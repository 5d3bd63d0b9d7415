import { nameKey, parentName } from '../dns/name/name.ts'
import type { Fallthrough } from '../plugin/arguments/fallthrough.ts'
import type { BlockConfig } from '../plugin/directive.ts'

/** Directives before `file` and `auto` that can answer for names that a zone file lacks. */
const EARLIER = ['rewrite', 'template', 'hosts', 'kuadrant', 'k8s_external', 'kubernetes']

interface WholeZoneOptions {
  readonly block: Pick<BlockConfig, 'directives'>
  readonly fallthrough: Fallthrough
  /** All zones of the directive. */
  readonly zones: readonly Uint8Array[]
}

/**
 * Returns whether a name of a zone that its file lacks does not exist, because nothing else of the server block can
 * have it.
 */
export function findWholeZones({
  block,
  fallthrough,
  zones,
}: WholeZoneOptions): (zone: Uint8Array) => boolean {
  const isAlone = !EARLIER.some((name) => block.directives.includes(name))
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
