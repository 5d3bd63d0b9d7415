import { resolve } from 'node:path'
import { FileZones } from '../../authority/file-zones.ts'
import { claimSnapshot } from '../../authority/snapshot-files.ts'
import { ThreadedFileZones } from '../../authority/threaded-file-zones.ts'
import { findWholeZones } from '../../authority/whole-zone.ts'
import type { Position } from '../../base/errors.ts'
import { guarding } from '../../base/telemetry/guard.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import {
  type Fallthrough,
  NO_FALLTHROUGH,
  scanFallthrough,
} from '../../plugin/arguments/fallthrough.ts'
import { nextOnce } from '../../plugin/arguments/once.ts'
import { scanPattern } from '../../plugin/arguments/pattern.ts'
import { scanReload } from '../../plugin/arguments/reload.ts'
import { scanAnsweredZones } from '../../plugin/arguments/zones.ts'
import { placeOf } from '../../plugin/block-place.ts'
import type { CheckHook, DirectivePart } from '../../plugin/description.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { ZoneSet } from '../../zone/lookup/zone-set.ts'
import type { Auto } from './auto.ts'
import { DEFAULT_PATTERN, FilePattern } from './file-pattern.ts'
import type { FoundZone } from './walk.ts'

const RELOAD_MS_DEFAULT = 60_000
const PROPERTIES = ['directory', 'reload', 'snapshot', 'fallthrough', 'upstream']

/** `auto [ZONES...] { directory DIR [REGEXP ORIGIN_TEMPLATE] … }`: every zone file of a directory. */
export const auto: Directive = {
  name: 'auto',
  setup: (c) => {
    const config = scanConfig(c)
    const served = new ThreadedFileZones(c, 'auto')
    const { directory, pattern, fallthrough, origins, reloadMs } = config
    const options = {
      name: 'auto',
      table: served.table,
      fallthrough,
      origins: new ZoneSet(origins),
    }
    const isWholeAmong = (found: readonly FoundZone[]) => {
      return findWholeZones(c, {
        directive: 'auto',
        fallthrough,
        zones: found.map(({ zone }) => zone),
      })
    }
    const check: CheckHook = async (report) => {
      const { checkFiles } = await import('./check-files.ts')
      const { DELEGATION_CHECK } = await import('../../authority/delegation-check.ts')
      const delegations = c.shared.acquire(DELEGATION_CHECK)
      const optionsAmong = (found: readonly FoundZone[]) => {
        const isWhole = isWholeAmong(found)
        return (zone: Uint8Array) => {
          return { isUnsigned: served.signs(zone), isWhole: isWhole(zone), delegations }
        }
      }
      return checkFiles(config, optionsAmong, report)
    }
    let zones: Auto | undefined
    let stopWalks = (): void => {}
    let isStopped = false
    /** Only the control thread needs it, so it is not loaded before. */
    const open = async (): Promise<Auto | undefined> => {
      const { Auto } = await import('./auto.ts')
      const { clock, log } = c
      if (!isStopped) zones = new Auto(served, { directory, pattern, clock, log, isWholeAmong })
      return zones
    }
    const start = async (): Promise<void> => {
      const auto = await open()
      if (auto === undefined) return
      auto.snapshots = config.snapshots
      await auto.walk()
      if (reloadMs === 0 || isStopped) return
      const guarded = guarding(c.log, `Searching zones in ${directory}`)
      stopWalks = c.timers.every(reloadMs, () => void guarded(() => auto.walk()))
    }
    const part: DirectivePart = {
      handler: (next) => new FileZones(next, options),
      answers: true,
      check,
      problems: () => zones?.problemGroups(`auto ${placeOf(c.block)}`) ?? [],
      offline: async ({ answers }) => {
        if (answers) await (await open())?.walk()
      },
      start,
      stop: () => {
        isStopped = true
        stopWalks()
        zones?.stop()
      },
    }
    return [served.part, part]
  },
}

interface AutoConfig {
  readonly origins: readonly Uint8Array[]
  readonly directory: string
  /** Of `directory`. */
  readonly position: Position
  readonly pattern: FilePattern
  readonly reloadMs: number
  readonly fallthrough: Fallthrough
  /** Directory of the snapshots; '' = none. */
  readonly snapshots: string
}

function scanConfig(c: SetupContext): AutoConfig {
  const d = c.dispenser
  let origins: readonly Uint8Array[] = []
  let directory = ''
  let position = d.position()
  let pattern = DEFAULT_PATTERN
  let reloadMs = RELOAD_MS_DEFAULT
  let fallthrough = NO_FALLTHROUGH
  let snapshots = ''
  for (let occurrences = 0; nextOnce(d, occurrences); occurrences++) {
    origins = scanAnsweredZones(d, d.remainingArgs(), c)
    d.eachProperty(() => {
      if (d.value() === 'directory') {
        if (!d.nextArg()) throw d.argError()
        directory = resolve(c.block.root, d.value())
        position = d.position()
        pattern = scanFilePattern(d)
      } else if (d.value() === 'reload') reloadMs = scanReload(d)
      else if (d.value() === 'snapshot') snapshots = scanSnapshots(c)
      else if (d.value() === 'fallthrough') fallthrough = scanFallthrough(d)
      // CoreDNS accepts it for compatibility with old Corefiles. CNAMEs always use an internal lookup.
      else if (d.value() === 'upstream') d.remainingArgs()
      else throw d.unknownProperty(d.value(), PROPERTIES)
    })
    if (directory === '') throw d.error('missing directory; add `directory DIR` to the block')
  }
  return { origins, directory, position, pattern, reloadMs, fallthrough, snapshots }
}

function scanSnapshots(c: SetupContext): string {
  const d = c.dispenser
  const path = resolve(c.block.root, d.onlyArg())
  if (!claimSnapshot(c, path))
    throw d.error(`snapshot ${path} belongs to another auto; name another directory`)
  return path
}

function scanFilePattern(d: Dispenser): FilePattern {
  if (!d.nextArg()) return DEFAULT_PATTERN
  const regexp = scanPattern(d, d.value())
  if (regexp.groupNames.length < 2) throw d.error('Need at least one sub expression')
  if (!d.nextArg()) throw d.argError()
  const pattern = new FilePattern(regexp, d.value())
  if (d.nextArg()) throw d.argError()
  return pattern
}
