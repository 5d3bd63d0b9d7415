import { type Clock, systemClock } from '../base/clock.ts'
import { InputError } from '../base/errors.ts'
import { runInSlices, runWhole } from '../base/slices.ts'
import { printName } from '../dns/name/name.ts'
import type { Logger } from '../telemetry/log.ts'
import type { ZoneReader } from '../zone/image/reader.ts'
import { ZoneAnswerer } from '../zone/lookup/answer.ts'
import type { SignatureReport } from '../zone/zonefile/check-signatures.ts'
import { fillImage } from '../zone/zonefile/fill.ts'
import {
  haveChanged,
  loadZone,
  type ZoneLoad,
  type ZoneLoadOptions,
} from '../zone/zonefile/load.ts'
import type { FileStamp } from '../zone/zonefile/text.ts'
import type { CheckReport } from './directive.ts'

/** Faults logged of one bad version; `sextant check` lists all. */
const LOGGED_ERRORS_MAX = 10

/** Every version of every zone has a number of its own. */
let lastVersion = 0

export function nextVersion(): number {
  return ++lastVersion
}

/** A version of a zone on its way to other threads, which read the same memory. */
export interface VersionMemory {
  readonly version: number
  readonly buffer: SharedArrayBuffer
}

/** Answers out of one version. `nsInAuthority`: as CoreDNS's file plugin does, unless `minimal` cuts it. */
export function answererOf(reader: ZoneReader, nsInAuthority: boolean): ZoneAnswerer {
  return new ZoneAnswerer(reader, undefined, { apexNsInAuthority: nsInAuthority })
}

/** How a zone's file becomes a new version. */
export interface FileZoneOptions {
  readonly clock: Clock
  readonly log: Logger
  /** Reload on every change of the file, not only where the SOA's serial differs. */
  readonly byMtime: boolean
  /** Puts the zone's name servers into the authority section of positive answers. */
  readonly nsInAuthority: boolean
}

/**
 * One zone that is served out of one master file. Each version is a zone image of its own, made while
 * the last one still answers, and put in force by one assignment; a bad version never is.
 */
export class FileZone {
  /** Apex, lower-case wire form. */
  readonly zone: Uint8Array
  readonly zoneText: string
  /** Where the next version comes from. */
  path: string
  /** Answers from the version in force; undefined = none was loaded yet: SERVFAIL. */
  answerer: ZoneAnswerer | undefined
  /** SOA serial of the version in force; -1 = none. */
  serial = -1
  /** What other threads need of the version in force; undefined = none was loaded yet. */
  shared: VersionMemory | undefined
  /** Of the version in force. */
  signatures: SignatureReport | undefined
  readonly #options: FileZoneOptions
  /** The files that the last attempt read, good or bad. */
  #files: readonly FileStamp[] = []
  #busy = false
  #stopped = false

  constructor(zone: Uint8Array, path: string, options: FileZoneOptions) {
    this.zone = zone
    this.zoneText = printName(zone)
    this.path = path
    this.#options = options
  }

  /**
   * Loads the first version. Returns the errors that keep it from being served, at least one; none =
   * it is in force. An error with code ZONE_MISSING means that there is no such file (yet).
   */
  async load(): Promise<readonly InputError[]> {
    const load = await this.#read({})
    this.#files = load.files
    if (load.kind === 'unreadable') return [missingOr(load.error)]
    if (load.kind === 'failed') return load.errors
    if (load.kind === 'unchanged') return []
    return this.#putInForce(load)
  }

  /**
   * Looks whether the file, or one that it includes, has changed, and serves the new version if it is
   * good and new. Says in the log what came of it. Does nothing while it is still at it.
   */
  async reload(): Promise<void> {
    if (this.#busy || this.#stopped || !this.hasChanged()) return
    this.#busy = true
    try {
      const load = await this.#read(this.#options.byMtime ? {} : { unlessSerial: this.serial })
      this.#files = load.files
      if (!this.#stopped) await this.#take(load)
    } finally {
      this.#busy = false
    }
  }

  /** No version that is being made comes into force any more. */
  stop(): void {
    this.#stopped = true
  }

  hasChanged(): boolean {
    return this.#files[0]?.file !== this.path || haveChanged(this.#files)
  }

  async #read(options: ZoneLoadOptions): Promise<ZoneLoad> {
    try {
      const { clock } = this.#options
      const timed = { ...options, nowSeconds: secondsOf(clock) }
      return await runInSlices(loadZone(this.path, this.zone, timed), clock)
    } catch (error) {
      return { kind: 'failed', errors: [outOfMemory(error, this.path)], files: [] }
    }
  }

  async #take(load: ZoneLoad): Promise<void> {
    const { log } = this.#options
    const zone = JSON.stringify(this.zoneText)
    const file = JSON.stringify(this.path)
    switch (load.kind) {
      case 'unreadable':
        log.error(`Failed to open zone ${zone} in ${file}: ${load.error.message}`)
        return
      case 'unchanged':
        log.info(
          `Zone ${zone} in ${file} changed without a new SOA serial: still serving ${this.serial}; raise the serial`,
        )
        return
      case 'failed':
        this.#logErrors(load.errors)
        return
      default: {
        const errors = await this.#putInForce(load)
        if (errors.length > 0) this.#logErrors(errors)
        else if (!this.#stopped) {
          log.info(`Successfully reloaded zone ${zone} in ${file} with ${load.serial} SOA serial`)
        }
      }
    }
  }

  async #putInForce(load: ZoneLoad & { kind: 'loaded' }): Promise<readonly InputError[]> {
    const { clock, log } = this.#options
    try {
      const image = await runInSlices(fillImage(load.records, this.zone), clock)
      if (this.#stopped) return []
      for (const warning of load.warnings) log.warning(warning.print())
      this.answerer = answererOf(image.reader(), this.#options.nsInAuthority)
      this.shared = { version: nextVersion(), buffer: image.handle.buffer }
      this.serial = load.serial
      this.signatures = load.signatures
      return []
    } catch (error) {
      return [error instanceof InputError ? error : outOfMemory(error, this.path)]
    }
  }

  #logErrors(errors: readonly InputError[]): void {
    const { log } = this.#options
    const keeps = this.serial === -1 ? '' : ` (still serving serial ${this.serial})`
    for (const error of errors.slice(0, LOGGED_ERRORS_MAX)) {
      log.error(`Parsing zone ${JSON.stringify(this.zoneText)}: ${error.print()}${keeps}`)
    }
    const more = errors.length - LOGGED_ERRORS_MAX
    if (more > 0)
      log.error(`Parsing zone ${JSON.stringify(this.zoneText)}: and ${more} more faults`)
  }
}

function secondsOf(clock: Clock): number {
  return Math.floor(clock.now() / 1000)
}

/** What a failed allocation means to the operator; rethrows anything else. */
function outOfMemory(error: unknown, file: string): InputError {
  if (!(error instanceof RangeError)) throw error
  const message = 'not enough memory for this zone; split it, or give the server more'
  return new InputError('ZONE_MEMORY', { file, line: 1 }, message, error)
}

/** `error` with the code ZONE_MISSING if its file isn't there. */
function missingOr(error: InputError): InputError {
  const { cause, position, message } = error
  const isMissing = cause instanceof Error && 'code' in cause && cause.code === 'ENOENT'
  return isMissing ? new InputError('ZONE_MISSING', position, message, cause) : error
}

/**
 * Every fault of a zone file, for `sextant check`; none = it could be served. `report` gets what a
 * load would log. A file that isn't there is one error with the code ZONE_MISSING.
 */
export function checkZoneFile(
  path: string,
  zone: Uint8Array,
  { warn, read }: CheckReport,
): readonly InputError[] {
  const load = runWhole(loadZone(path, zone, { nowSeconds: secondsOf(systemClock) }))
  if (load.kind === 'unreadable') return [missingOr(load.error)]
  if (load.kind === 'failed') return load.errors
  if (load.kind !== 'loaded') return []
  for (const warning of load.warnings) warn(warning)
  read(
    `${path}: zone ${printName(zone)}, serial ${load.serial}, ${load.records.recordCount} records`,
  )
  return []
}
