import { resolve } from 'node:path'
import { claimSnapshot } from '../../authority/snapshot-files.ts'
import type { Position } from '../../base/errors.ts'
import { equalNames } from '../../dns/name/name.ts'
import {
  type Fallthrough,
  NO_FALLTHROUGH,
  scanFallthrough,
} from '../../plugin/arguments/fallthrough.ts'
import { scanReload } from '../../plugin/arguments/reload.ts'
import { scanAnsweredZones } from '../../plugin/arguments/zones.ts'
import type { SetupContext } from '../../plugin/directive.ts'

const RELOAD_MS_DEFAULT = 60_000
const PROPERTIES = ['reload', 'reload_by_mtime', 'snapshot', 'fallthrough', 'upstream']

export interface ZoneConfig {
  readonly zone: Uint8Array
  readonly path: string
  readonly reloadMs: number
  readonly byMtime: boolean
  /** See `FileZone`. */
  readonly snapshot: string
  /** Position of the line that names the file. */
  readonly position: Position
}

interface FileConfig {
  readonly zones: readonly ZoneConfig[]
  readonly fallthrough: Fallthrough
}

/** Reads the lines of the directive. */
export function scanConfig(c: SetupContext): FileConfig {
  const d = c.dispenser
  const zones: ZoneConfig[] = []
  let fallthrough = NO_FALLTHROUGH
  while (d.next()) {
    if (!d.nextArg()) throw d.argError()
    const position = d.position()
    const path = resolve(c.block.root, d.value())
    const origins = scanAnsweredZones(d, d.remainingArgs(), c)
    let reloadMs = RELOAD_MS_DEFAULT
    let byMtime = false
    let snapshot = ''
    d.eachProperty(() => {
      if (d.value() === 'reload') reloadMs = scanReload(d)
      else if (d.value() === 'reload_by_mtime') byMtime = true
      else if (d.value() === 'snapshot') snapshot = scanSnapshot(c, origins.length)
      else if (d.value() === 'fallthrough') fallthrough = scanFallthrough(d)
      // CoreDNS accepts it for compatibility with old Corefiles. CNAMEs always use an internal lookup.
      else if (d.value() === 'upstream') d.remainingArgs()
      else throw d.unknownProperty(d.value(), PROPERTIES)
    })
    for (const zone of origins) {
      const others = zones.filter((other) => !equalNames(other.zone, zone))
      zones.splice(0, zones.length, ...others, {
        zone,
        path,
        reloadMs,
        byMtime,
        snapshot,
        position,
      })
    }
  }
  return { zones, fallthrough }
}

function scanSnapshot(c: SetupContext, zoneCount: number): string {
  const d = c.dispenser
  if (zoneCount !== 1) throw d.error('snapshot keeps one zone; write a line for each zone')
  const path = resolve(c.block.root, d.onlyArg())
  if (!claimSnapshot(c, path))
    throw d.error(`snapshot ${path} belongs to another zone; name another file`)
  return path
}
