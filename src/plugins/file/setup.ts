import { resolve } from 'node:path'
import { checkZoneFile, FileZone, MissingFileError } from '../../authority/file-zone.ts'
import { FileZones } from '../../authority/file-zones.ts'
import { claimSnapshot } from '../../authority/snapshot-files.ts'
import { ThreadedFileZones } from '../../authority/threaded-file-zones.ts'
import { findWholeZones } from '../../authority/whole-zone.ts'
import { groupOfZoneFiles, groupsOfSnapshots } from '../../authority/zone-file-problems.ts'
import { printDuration } from '../../base/duration.ts'
import { InputError, type Position } from '../../base/errors.ts'
import { guarding } from '../../base/telemetry/guard.ts'
import { equalNames, printName } from '../../dns/name/name.ts'
import {
  type Fallthrough,
  NO_FALLTHROUGH,
  scanFallthrough,
} from '../../plugin/arguments/fallthrough.ts'
import { scanReload } from '../../plugin/arguments/reload.ts'
import { scanAnsweredZones } from '../../plugin/arguments/zones.ts'
import { placeOf } from '../../plugin/block-place.ts'
import type { CheckReport, DirectivePart } from '../../plugin/description.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'

const RELOAD_MS_DEFAULT = 60_000
const PROPERTIES = ['reload', 'reload_by_mtime', 'snapshot', 'fallthrough', 'upstream']

interface ZoneConfig {
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

/** `file DBFILE [ZONES...] { … }`: zones from master files. */
export const file: Directive = {
  name: 'file',
  setup: (c) => {
    const config = scanConfig(c)
    const served = new ThreadedFileZones(c, 'file')
    const { nsInAuthority } = served
    const isWholeZone = findWholeZones(c, {
      directive: 'file',
      fallthrough: config.fallthrough,
      zones: config.zones.map(({ zone }) => zone),
    })
    const zones = config.zones.map(({ zone, path, byMtime }) => {
      const isWhole = isWholeZone(zone)
      const options = { clock: c.clock, log: c.log, byMtime, nsInAuthority, isWhole }
      return new FileZone(zone, path, options)
    })
    served.publish(zones)
    const options = {
      name: 'file',
      table: served.table,
      fallthrough: config.fallthrough,
    }
    const of = `file ${placeOf(c.block)}`
    const stops: (() => void)[] = []
    const start = async (): Promise<void> => {
      for (const [i, zone] of zones.entries()) {
        const { reloadMs, snapshot } = config.zones[i]!
        zone.snapshot = snapshot
        await loadFirst(c, zone, config.zones[i]!)
        if (reloadMs === 0) continue
        const reload = async (): Promise<void> => {
          if (await zone.reload()) served.publish(zones)
        }
        const guarded = guarding(c.log, `Reloading zone ${zone.zoneText}`)
        stops.push(c.timers.every(reloadMs, () => void guarded(reload)))
      }
      served.publish(zones)
    }
    const part: DirectivePart = {
      handler: (next) => new FileZones(next, options),
      answers: true,
      problems: () => [groupOfZoneFiles(zones, of), ...groupsOfSnapshots(zones)],
      check: (report) => {
        return config.zones.flatMap((zone) => {
          return checkZone(zone, isWholeZone(zone.zone), report)
        })
      },
      offline: async ({ answers }) => {
        if (!answers) return
        for (const [i, zone] of zones.entries()) await loadFirst(c, zone, config.zones[i]!)
        served.publish(zones)
      },
      start,
      stop: () => {
        for (const stop of stops) stop()
        for (const zone of zones) zone.stop()
      },
    }
    return [served.part, part]
  },
}

/**
 * Loads the first version. If reloads are enabled, a missing file is waited for. An invalid file
 * stops the start.
 */
async function loadFirst(c: SetupContext, zone: FileZone, config: ZoneConfig): Promise<void> {
  const errors = await zone.load()
  const first = errors[0]
  if (first === undefined) return
  if (first instanceof MissingFileError) {
    const { position } = config
    const missing = missingFile(first, config)
    if (config.reloadMs === 0) throw missing
    c.log.warning(`${position.file}:${position.line}: ${missing.message}`)
    return
  }
  const more = errors.length === 1 ? '' : ` (and ${errors.length - 1} more faults)`
  const message = `plugin/file: zone ${zone.zoneText} ${first.message}${more}`
  throw new InputError(first.position, message, first)
}

/** Returns the faults that `loadFirst` would report: a file that is waited for is not a fault. */
function checkZone(
  config: ZoneConfig,
  isWhole: boolean,
  report: CheckReport,
): readonly InputError[] {
  const found = checkZoneFile(config.path, config.zone, { isWhole }, report)
  if (!(found[0] instanceof MissingFileError)) return found
  const missing = missingFile(found[0], config)
  if (config.reloadMs === 0) return [missing]
  report.warn(missing)
  return []
}

/** A missing file is a fault of the line that names it. `cause`: the error of opening it. */
function missingFile(cause: InputError, { position, reloadMs, zone }: ZoneConfig): InputError {
  if (reloadMs === 0) {
    const message = `plugin/file: zone ${printName(zone)} ${cause.message}`
    return new InputError(position, message, cause)
  }
  const when = printDuration(reloadMs)
  const message = `Failed to open ${JSON.stringify(cause.message)}: trying again in ${when}`
  return new InputError(position, message, cause)
}

function scanConfig(c: SetupContext): FileConfig {
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
