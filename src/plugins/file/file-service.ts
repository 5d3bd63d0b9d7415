import {
  checkZoneFile,
  type FileCheckOptions,
  FileZone,
  MissingFileError,
} from '../../authority/file-zone.ts'
import type { ThreadedFileZones } from '../../authority/threaded-file-zones.ts'
import { groupOfZoneFiles, groupsOfSnapshots } from '../../authority/zone-file-problems.ts'
import { printDuration } from '../../base/duration.ts'
import { InputError } from '../../base/errors.ts'
import { guarding } from '../../base/telemetry/guard.ts'
import type { ProblemGroup } from '../../base/telemetry/problems.ts'
import { printName } from '../../dns/name/name.ts'
import { placeOf } from '../../plugin/block-place.ts'
import type { CheckReport } from '../../plugin/description.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import type { ZoneConfig } from './config.ts'

interface FileServiceParts {
  readonly configs: readonly ZoneConfig[]
  readonly served: ThreadedFileZones
  /** See `FileZoneOptions`. */
  readonly isWhole: (zone: Uint8Array) => boolean
}

/** What `file` does on the control thread: loads its zones, and keeps them up to date. */
export class FileService {
  readonly #c: SetupContext
  readonly #parts: FileServiceParts
  readonly #zones: readonly FileZone[]
  readonly #stops: (() => void)[] = []

  constructor(c: SetupContext, parts: FileServiceParts) {
    const { configs, isWhole, served } = parts
    const { clock, log } = c
    const { nsInAuthority } = served
    this.#c = c
    this.#parts = parts
    this.#zones = configs.map(({ zone, path, byMtime }) => {
      const isUnsigned = served.signs(zone)
      const options = { clock, log, byMtime, nsInAuthority, isUnsigned, isWhole: isWhole(zone) }
      return new FileZone(zone, path, options)
    })
  }

  /** Loads the first versions. */
  async loadOffline(): Promise<void> {
    const { configs, served } = this.#parts
    for (const [i, zone] of this.#zones.entries()) await loadFirst(this.#c, zone, configs[i]!)
    served.publish(this.#zones)
  }

  /** Loads the first versions, and later ones from then on. */
  async start(): Promise<void> {
    const { configs, served } = this.#parts
    const { log, timers } = this.#c
    for (const [i, zone] of this.#zones.entries()) {
      const { reloadMs, snapshot } = configs[i]!
      if (snapshot !== '') {
        const { ZoneFileSnapshot } = await import('../../authority/zone-file-snapshot.ts')
        zone.snapshot = new ZoneFileSnapshot(snapshot, this.#c)
      }
      await loadFirst(this.#c, zone, configs[i]!)
      if (reloadMs === 0) continue
      const reload = async (): Promise<void> => {
        if (await zone.reload()) served.publish(this.#zones)
      }
      const guarded = guarding(log, `Reloading zone ${zone.zoneText}`)
      this.#stops.push(timers.every(reloadMs, () => void guarded(reload)))
    }
    served.publish(this.#zones)
    await served.settled()
  }

  /** What is wrong with the files. */
  problemGroups(): readonly ProblemGroup[] {
    const of = `file ${placeOf(this.#c.block)}`
    return [groupOfZoneFiles(this.#zones, of), ...groupsOfSnapshots(this.#zones)]
  }

  stop(): void {
    for (const stop of this.#stops) stop()
    for (const zone of this.#zones) zone.stop()
  }
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
    c.log.warning(`${position.file}:${position.line}: ${missing.message}`, 'zone-file-missing')
    return
  }
  const more = errors.length === 1 ? '' : ` (and ${errors.length - 1} more faults)`
  const message = `plugin/file: zone ${zone.zoneText} ${first.message}${more}`
  throw new InputError(first.position, message, first)
}

/** Returns the faults that `loadFirst` would report: a file that is waited for is not a fault. */
export function checkZone(
  config: ZoneConfig,
  options: FileCheckOptions,
  report: CheckReport,
): readonly InputError[] {
  const found = checkZoneFile(config.path, config.zone, options, report)
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
