import { join } from 'node:path'
import { FileZone } from '../../authority/file-zone.ts'
import type { ThreadedFileZones } from '../../authority/threaded-file-zones.ts'
import { groupOfZoneFiles, groupsOfSnapshots } from '../../authority/zone-file-problems.ts'
import type { Clock } from '../../base/clock.ts'
import { runInSlices, Slices } from '../../base/slices.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { ProblemGroup } from '../../base/telemetry/problems.ts'
import type { FilePattern } from './file-pattern.ts'
import { type FoundZone, type FoundZones, findZoneFiles } from './walk.ts'

interface AutoOptions {
  readonly directory: string
  readonly pattern: FilePattern
  readonly clock: Clock
  readonly log: Logger
  /** Returns whether the file of a zone has all of its names, if the zones `found` are served. */
  readonly isWholeAmong: (found: readonly FoundZone[]) => (zone: Uint8Array) => boolean
}

/** Keeps the served zones in sync with the files of a directory. */
export class Auto {
  /** Directory of the snapshots of large files; '' = none. Set before the first walk. */
  snapshots = ''
  readonly #served: ThreadedFileZones
  readonly #options: AutoOptions
  /**
   * By name key. Zones whose first version was invalid are here too, and are tried again when their
   * files change.
   */
  readonly #zones = new Map<string, FileZone>()
  /** What the last walk found. */
  #found: FoundZones = new Map()
  /** What the last walk warned of. */
  #warnings: readonly string[] = []
  #busy = false
  #stopped = false

  constructor(served: ThreadedFileZones, options: AutoOptions) {
    this.#served = served
    this.#options = options
  }

  /** Finds new, changed and deleted files. Does nothing while an earlier walk is running. */
  async walk(): Promise<void> {
    if (this.#busy || this.#stopped) return
    this.#busy = true
    try {
      await this.#walk()
    } finally {
      this.#busy = false
    }
  }

  /** What is wrong with the directory and its files. `of`: the directive and its server block. */
  problemGroups(of: string): ProblemGroup[] {
    const place = this.#options.directory
    const problems = this.#warnings.map((reason) => ({ place, object: place, reason }))
    return [
      groupOfZoneFiles(this.#zones.values(), of),
      ...groupsOfSnapshots(this.#zones.values()),
      { kind: 'zone-file', of: `${of} walk`, count: problems.length, problems },
    ]
  }

  stop(): void {
    this.#stopped = true
    for (const zone of this.#zones.values()) zone.stop()
  }

  async #walk(): Promise<void> {
    const { clock, directory, isWholeAmong, log, pattern } = this.#options
    const warnings: string[] = []
    const warn = (text: string): void => {
      log.warning(text, 'zone-file-skipped')
      warnings.push(text)
    }
    const search = findZoneFiles(directory, pattern, warn, this.#found)
    const found = await runInSlices(search, clock)
    this.#warnings = warnings
    // If the directory can't be read, its zones are kept.
    if (found === undefined) return
    this.#found = found
    let isWhole: ((zone: Uint8Array) => boolean) | undefined
    let isChanged = false
    const slices = new Slices(clock)
    for (const file of found.values()) {
      // Thousands of files take seconds, also if none has changed.
      if (slices.isOver) await slices.pause()
      if (this.#stopped) return
      const known = this.#zones.get(file.key)
      if (known === undefined) {
        isWhole ??= isWholeAmong([...found.values()])
        if (await this.#insert(file, isWhole(file.zone))) isChanged = true
        continue
      }
      known.path = file.path
      if (known.hasChanged() && (await this.#update(known))) isChanged = true
    }
    for (const key of this.#zones.keys()) {
      if (!found.has(key) && this.#remove(key)) isChanged = true
    }
    if (!isChanged) return
    this.#publish()
    await this.#served.settled()
  }

  /** Returns whether the zone has a version. */
  async #insert({ key, path, zone }: FoundZone, isWhole: boolean): Promise<boolean> {
    const { clock, log } = this.#options
    const inserted = new FileZone(zone, path, {
      clock,
      log,
      byMtime: false,
      nsInAuthority: this.#served.nsInAuthority,
      isUnsigned: this.#served.signs(zone),
      isWhole,
    })
    if (this.snapshots !== '') {
      const { ZoneFileSnapshot } = await import('../../authority/zone-file-snapshot.ts')
      const path = join(this.snapshots, fileNameOf(inserted.zoneText))
      inserted.snapshot = new ZoneFileSnapshot(path, { clock, log })
    }
    this.#zones.set(key, inserted)
    return this.#load(inserted)
  }

  /** Returns whether another version is in force. */
  #update(zone: FileZone): Promise<boolean> {
    return zone.answerer === undefined ? this.#load(zone) : zone.reload()
  }

  async #load(zone: FileZone): Promise<boolean> {
    const { log } = this.#options
    const errors = await zone.load()
    for (const error of errors.slice(0, 1)) {
      log.warning(`Parse zone \`${zone.zoneText}': ${error.print()}`, 'zone-parse-failed')
    }
    if (errors.length > 0) return false
    log.info(`Inserting zone \`${zone.zoneText}' from: ${zone.path}`, 'zone-inserted')
    return true
  }

  /** Returns whether the zone had a version. */
  #remove(key: string): boolean {
    const zone = this.#zones.get(key)
    zone?.stop()
    this.#zones.delete(key)
    if (zone?.answerer === undefined) return false
    this.#options.log.info(`Deleting zone \`${zone.zoneText}'`, 'zone-deleted')
    return true
  }

  /**
   * Publishes the zones. A zone that never had a valid version is left out: its names go to the
   * next plugin.
   */
  #publish(): void {
    const zones = [...this.#zones.values()]
    this.#served.publish(zones.filter((zone) => zone.answerer !== undefined))
  }
}

/** Returns the name of the snapshot of a zone: `example.org.snapshot`. A slash is legal in names. */
function fileNameOf(zoneText: string): string {
  return `${zoneText.replaceAll('%', '%25').replaceAll('/', '%2F')}snapshot`
}
