import { type Clock, systemClock } from '../base/clock.ts'
import { InputError } from '../base/errors.ts'
import { plural } from '../base/plural.ts'
import { runWhole } from '../base/slices.ts'
import type { Logger } from '../base/telemetry/log.ts'
import { printName } from '../dns/name/name.ts'
import type { CheckReport } from '../plugin/description.ts'
import { ZoneReader } from '../zone/image/reader.ts'
import type { ZoneAnswerer } from '../zone/lookup/answer.ts'
import type { SignatureReport } from '../zone/zonefile/check-signatures.ts'
import type { ImageLoad } from '../zone/zonefile/image-load.ts'
import { haveChanged, loadZone, type ZoneLoadOptions } from '../zone/zonefile/load.ts'
import { loadWithoutPause } from '../zone/zonefile/load-in-thread.ts'
import { type FileStamp, hasOtherSize } from '../zone/zonefile/text.ts'
import type { DelegationCheck } from './delegation-check.ts'
import { answererOf, nextVersion, type VersionMemory } from './version-memory.ts'
import type { ZoneFileSnapshot } from './zone-file-snapshot.ts'

/** Faults logged per invalid version; `sextant check` lists all. */
const LOGGED_ERRORS_MAX = 10

/** Options of the conversion of a zone's file to a version. */
export interface FileZoneOptions {
  readonly clock: Clock
  readonly log: Logger
  /** Reload on every change of the file, not only if the SOA's serial differs. */
  readonly byMtime: boolean
  /** Puts the zone's name servers into the authority section of positive answers. */
  readonly nsInAuthority: boolean
  /** See `ZoneLoadOptions`. */
  readonly isWhole: boolean
  /** See `ZoneLoadOptions`. */
  readonly isUnsigned: boolean
}

/**
 * One zone that is served from one master file. Each version is a zone image of its own. It is made
 * while the previous one still answers, and put in force by one assignment. An invalid version is
 * never put in force.
 */
export class FileZone {
  /** Apex, lower-case wire form. */
  readonly zone: Uint8Array
  readonly zoneText: string
  /** File of the next version. */
  path: string
  /** Answers from the version in force; undefined = no version was loaded yet: SERVFAIL. */
  answerer: ZoneAnswerer | undefined
  /** SOA serial of the version in force; -1 = none. */
  serial = -1
  /** The data of the version in force for other threads; undefined = no version was loaded yet. */
  shared: VersionMemory | undefined
  /** Why the last version of the file is not in force; empty = it is. */
  faults: readonly InputError[] = []
  /** Report on the version in force. */
  signatures: SignatureReport | undefined
  /** Keeps the last version for the next start, if the zone file is large; undefined = it is not kept. */
  snapshot: ZoneFileSnapshot | undefined
  readonly #options: FileZoneOptions
  /** The files that the last attempt read, valid or not. */
  #files: readonly FileStamp[] = []
  /** The file of the version in force; undefined = no version was loaded yet. */
  #served: FileStamp | undefined
  #busy = false
  #stopped = false

  constructor(zone: Uint8Array, path: string, options: FileZoneOptions) {
    this.zone = zone
    this.zoneText = printName(zone)
    this.path = path
    this.#options = options
  }

  /**
   * Loads the first version. Returns the errors that prevent serving it, at least one; no errors =
   * it is in force. A MissingFileError means that the file does not exist (yet).
   */
  async load(): Promise<readonly InputError[]> {
    const { path, zone: apex, snapshot } = this
    const { isWhole } = this.#options
    const load = (await snapshot?.resume({ path, apex, isWhole })) ?? (await this.#read({}))
    this.#files = load.files
    this.faults = this.#settle(load)
    return this.faults
  }

  /**
   * Checks whether the file, or one that it includes, has changed. Serves the new version if it is
   * valid and new, and logs the result. Does nothing while an earlier call is running. Returns whether another version
   * is in force.
   */
  async reload(): Promise<boolean> {
    if (this.#busy || this.#stopped || !this.hasChanged()) return false
    this.#busy = true
    const { shared } = this
    try {
      const load = await this.#read(this.#options.byMtime ? {} : { unlessSerial: this.serial })
      this.#files = load.files
      if (!this.#stopped) this.#take(load)
      return this.shared !== shared
    } finally {
      this.#busy = false
    }
  }

  /** Prevents any version that is being made from coming into force. */
  stop(): void {
    this.#stopped = true
  }

  hasChanged(): boolean {
    return this.#files[0]?.file !== this.path || haveChanged(this.#files)
  }

  #read(options: ZoneLoadOptions): Promise<ImageLoad> {
    const { clock, isUnsigned, isWhole } = this.#options
    const limits = { nowSeconds: secondsOf(clock), memoryMax: 'left' as const }
    const all = { ...options, ...limits, isUnsigned, isWhole }
    const { snapshot } = this
    const job = { path: this.path, apex: this.zone, options: all, snapshot: snapshot?.path }
    const onSnapshot = (fault: string): void => {
      if (!this.#stopped) snapshot?.note(fault)
    }
    return loadWithoutPause(job, clock, { onSnapshot })
  }

  #settle(load: ImageLoad): readonly InputError[] {
    if (load.kind === 'unreadable') return [missingOr(load.error)]
    if (load.kind === 'failed') return load.errors
    return load.kind === 'unchanged' ? this.#sameSerial(load) : this.#putInForce(load)
  }

  /** A file that was only copied or touched is no fault. */
  #sameSerial({ files: [file] }: ImageLoad): readonly InputError[] {
    if (file === undefined || this.#served === undefined) return []
    if (!hasOtherSize(file, this.#served)) return []
    const message = 'the file has another size, but the same SOA serial; raise the serial'
    return [new InputError({ file: this.path, line: 1 }, message)]
  }

  #take(load: ImageLoad): void {
    const { log } = this.#options
    this.faults = this.#settle(load)
    const zone = JSON.stringify(this.zoneText)
    const file = JSON.stringify(this.path)
    switch (load.kind) {
      case 'unreadable':
        log.error(
          `Failed to open zone ${zone} in ${file}: ${load.error.message}`,
          'zone-open-failed',
        )
        return
      case 'unchanged':
        log.info(
          `Zone ${zone} in ${file} changed without a new SOA serial: still serving ${this.serial}; raise the serial`,
          'zone-serial-unchanged',
        )
        return
      case 'failed':
        this.#logErrors(load.errors)
        return
      default:
        if (this.faults.length > 0) this.#logErrors(this.faults)
        else if (!this.#stopped) {
          log.info(
            `Successfully reloaded zone ${zone} in ${file} with ${load.serial} SOA serial`,
            'zone-reloaded',
            { zone, file, serial: load.serial },
          )
        }
    }
  }

  #putInForce(load: ImageLoad & { kind: 'loaded' }): readonly InputError[] {
    if (this.#stopped) return []
    for (const warning of load.warnings)
      this.#options.log.warning(warning.print(), 'zone-file-warning')
    const { buffer } = load.image
    this.answerer = answererOf(new ZoneReader({ buffer }), this.#options.nsInAuthority)
    this.shared = { version: nextVersion(), buffer }
    this.serial = load.serial
    this.#served = load.files[0]
    this.signatures = load.signatures
    return []
  }

  #logErrors(errors: readonly InputError[]): void {
    const { log } = this.#options
    const keeps = this.serial === -1 ? '' : ` (still serving serial ${this.serial})`
    for (const error of errors.slice(0, LOGGED_ERRORS_MAX)) {
      log.error(
        `Parsing zone ${JSON.stringify(this.zoneText)}: ${error.print()}${keeps}`,
        'zone-parse-failed',
      )
    }
    const more = errors.length - LOGGED_ERRORS_MAX
    if (more > 0)
      log.error(
        `Parsing zone ${JSON.stringify(this.zoneText)}: and ${more} more faults`,
        'zone-parse-failed-more',
      )
  }
}

function secondsOf(clock: Clock): number {
  return Math.floor(clock.now() / 1000)
}

/** The zone's own file does not exist. A missing $INCLUDE file is another InputError. */
export class MissingFileError extends InputError {}

/** Returns `error` as a MissingFileError if its file does not exist. */
function missingOr(error: InputError): InputError {
  const { cause, position, message } = error
  const isMissing = cause instanceof Error && 'code' in cause && cause.code === 'ENOENT'
  return isMissing ? new MissingFileError(position, message, cause) : error
}

export interface FileCheckOptions extends Pick<FileZoneOptions, 'isUnsigned' | 'isWhole'> {
  /** Compares the file with other zones of the Corefile; absent = the file is not served. */
  readonly delegations?: DelegationCheck
}

/**
 * Returns every fault of a zone file, for `sextant check`; no faults = it can be served. `report`
 * gets what a load would log. A missing file is one MissingFileError.
 */
export function checkZoneFile(
  path: string,
  zone: Uint8Array,
  { isUnsigned, isWhole, delegations }: FileCheckOptions,
  { warn, read }: CheckReport,
): readonly InputError[] {
  const load = runWhole(
    loadZone(path, zone, {
      nowSeconds: secondsOf(systemClock),
      isUnsigned,
      isWhole,
      namesCheckedMax: Infinity,
    }),
  )
  if (load.kind === 'unreadable') return [missingOr(load.error)]
  if (load.kind === 'failed') return load.errors
  if (load.kind !== 'loaded') return []
  for (const warning of load.warnings) warn(warning)
  delegations?.addFile(zone, path, load.records, isUnsigned, warn)
  read(
    `${path}: zone ${printName(zone)}, serial ${load.serial}, ${plural(load.records.recordCount, 'record')}`,
  )
  return []
}
