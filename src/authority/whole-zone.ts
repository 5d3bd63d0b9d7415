import { key } from '../base/shared-values.ts'
import { nameKey, parentName } from '../dns/name/name.ts'
import type { Fallthrough } from '../plugin/arguments/fallthrough.ts'
import type { SetupContext } from '../plugin/directive.ts'

/** Directives that can answer for names that a zone of a directive behind them lacks. */
const EARLIER = ['rewrite', 'template', 'hosts', 'kuadrant', 'k8s_external', 'kubernetes', 'file']
/** Keys of all names above a zone of a server block. */
const ABOVE_BLOCKS = key<ReadonlySet<string>>('names above the zones of server blocks')

interface WholeZoneOptions {
  /** Its name. */
  readonly directive: string
  readonly fallthrough: Fallthrough
  /** All zones of the directive. */
  readonly zones: readonly Uint8Array[]
}

/**
 * Returns whether a name of a zone that its data lack does not exist, because nothing else of the server block, and no
 * other server block, can have it.
 */
export function findWholeZones(
  c: Pick<SetupContext, 'block' | 'blockZones' | 'shared'>,
  { directive, fallthrough, zones }: WholeZoneOptions,
): (zone: Uint8Array) => boolean {
  const isAlone = isFirst(c, directive)
  let parents: ReadonlySet<string> | undefined
  return (zone) => {
    if (!isAlone || fallthrough.touches(zone)) return false
    parents ??= parentsOf(zones)
    return !parents.has(nameKey(zone)) && !findAbove(c).has(nameKey(zone))
  }
}

/** Returns whether no directive of the server block in front of this one can answer for names that its zones lack. */
export function isFirst({ block }: Pick<SetupContext, 'block'>, directive: string): boolean {
  const before = block.directives.slice(0, block.directives.indexOf(directive))
  return !before.some((name) => EARLIER.includes(name))
}

/** Computes the names once for all blocks: there may be thousands. */
function findAbove({ blockZones, shared }: Pick<SetupContext, 'blockZones' | 'shared'>) {
  const names = shared.find(ABOVE_BLOCKS) ?? parentsOf(blockZones)
  shared.provide(ABOVE_BLOCKS, names)
  return names
}

/** Returns the keys of all names above one of the zones. */
function parentsOf(zones: readonly Uint8Array[]): ReadonlySet<string> {
  const parents = new Set<string>()
  for (const zone of zones) {
    for (let name = zone; name.length > 1; ) {
      name = parentName(name)
      parents.add(nameKey(name))
    }
  }
  return parents
}
