import { putContent, soaWithSerial } from '../../authority/inline/source-content.ts'
import { printDuration } from '../../base/duration.ts'
import { InputError } from '../../base/errors.ts'
import { runInSlices } from '../../base/slices.ts'
import { stampOf, statIfAny } from '../../base/stat.ts'
import type { ProblemText } from '../../base/telemetry/problems.ts'
import { printName } from '../../dns/name/name.ts'
import { isSerialAfter } from '../../dns/serial.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import { ClockGuard } from '../../signing/zone/clock-guard.ts'
import { ZoneSigner } from '../../signing/zone/zone-signer.ts'
import { DEFAULT_SIGNING, type SigningPolicy, type ZoneKeys } from '../../signing/zone-keys.ts'
import { VersionView } from '../../xfr/journal/version-view.ts'
import { ZoneImage } from '../../zone/image/writer.ts'
import { haveChanged } from '../../zone/zonefile/load.ts'
import { loadWithoutPause } from '../../zone/zonefile/load-in-thread.ts'
import type { FileStamp } from '../../zone/zonefile/text.ts'
import type { SignConfig } from './config.ts'
import { type FoundKeys, readKeys } from './keys.ts'
import { readSignedFile, type SignedFile, writeZoneFile } from './signed-file.ts'

const HOUR_SECONDS = 3600
const DAY_SECONDS = 24 * HOUR_SECONDS
/** As CoreDNS: age of signatures, and time before their expiration, at which they are made again. */
const AGE_SECONDS_MAX = 6 * DAY_SECONDS
const LEFT_SECONDS_MIN = 14 * DAY_SECONDS
/** As CoreDNS: the validity of signatures, from now. Jitters spread the zones and RRsets over time. */
const INCEPTION_OFFSET_SECONDS = 3 * HOUR_SECONDS
const INCEPTION_JITTER_SECONDS = 18 * HOUR_SECONDS
const VALIDITY_SECONDS = 37 * DAY_SECONDS
const EXPIRATION_JITTER_SECONDS = 5 * DAY_SECONDS

/** Keeps the signed file of one zone up to date. */
export class ZoneFileSigner {
  /** Why the zone cannot be signed; '' = it can. */
  fault = ''
  readonly #config: SignConfig
  readonly #c: SetupContext
  readonly #zoneText: string
  readonly #policy: SigningPolicy
  readonly #guard: ClockGuard
  #found: FoundKeys | undefined
  /** The files that the last signed version was made of; undefined = another process made it. */
  #sources: readonly FileStamp[] | undefined
  /** The signed file, and the stamp with which it was read. */
  #signed: { readonly stamp: string; readonly file: SignedFile | string } | undefined
  #isBusy = false
  #isStopped = false

  constructor(config: SignConfig, c: SetupContext) {
    this.#config = config
    this.#c = c
    this.#zoneText = printName(config.zone)
    this.#guard = new ClockGuard(c.clock)
    const jitter = Math.floor(c.random() * INCEPTION_JITTER_SECONDS)
    this.#policy = {
      ...DEFAULT_SIGNING,
      name: 'sign',
      validitySeconds: VALIDITY_SECONDS,
      jitterSeconds: EXPIRATION_JITTER_SECONDS,
      inceptionOffsetSeconds: INCEPTION_OFFSET_SECONDS + jitter,
    }
  }

  /** Reads the keys. Call it before `update`. @throws InputError if a key cannot be used. */
  async start(): Promise<void> {
    this.#found = await readKeys(this.#config, this.#c)
    for (const warning of this.#found.warnings) this.#c.log.warning(warning, 'sign-key')
  }

  /** Signs if necessary; never rejects. Does nothing while an earlier call is running. */
  async update(): Promise<void> {
    const { clock, log } = this.#c
    if (this.#isBusy || this.#isStopped || this.#found === undefined) return
    const reason = this.#reason()
    // Also without a reason: the guard has to see each step of the clock.
    const refusal = this.#guard.refusal(this.#newestInception)
    if (refusal !== '') return this.#report(refusal)
    if (reason === '') {
      this.fault = ''
      return
    }
    this.#isBusy = true
    const startMs = clock.monotonic()
    const zone = JSON.stringify(this.#zoneText)
    try {
      if (this.fault === '') log.info(`Signing ${zone} because ${reason}`, 'sign-begin')
      const serial = await this.#sign(this.#found.keys)
      if (this.#isStopped) return
      this.fault = ''
      const tags = JSON.stringify(this.#found.tags.join())
      const file = JSON.stringify(this.#config.signed)
      const took = printDuration(clock.monotonic() - startMs)
      log.info(
        `Successfully signed zone ${zone} in ${file} with key tags ${tags} and ${serial} SOA serial, elapsed ${took}`,
        'sign-end',
      )
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#isBusy = false
    }
  }

  /** What is wrong now. */
  get problem(): ProblemText | undefined {
    if (this.fault === '') return undefined
    const { path } = this.#config
    const object = `zone ${this.#zoneText}`
    return { place: path, object, reason: `${object} is not signed again: ${this.fault}` }
  }

  stop(): void {
    this.#isStopped = true
  }

  /** Of the signatures of the file; 0 = it has none. */
  get #newestInception(): number {
    const { file } = this.#signed ?? {}
    const isThere = typeof file === 'object' && statIfAny(this.#config.signed) !== undefined
    return isThere ? file.inceptionSeconds : 0
  }

  /** Returns why the zone must be signed; '' = the signed file is good. */
  #reason(): string {
    const { signed, zone, path } = this.#config
    const stamp = stampOf(signed)
    if (stamp === '') return `open ${signed}: no such file`
    if (this.#signed?.stamp !== stamp) {
      this.#signed = { stamp, file: readSignedFile(signed, zone) }
    }
    const { file } = this.#signed
    if (typeof file === 'string') return file
    if (this.#hasNewSource(signed)) return `${path} has changed`
    const dnskeys = this.#found!.keys.dnskeys.map((dnskey) => Buffer.from(dnskey).toString('hex'))
    const areSame =
      dnskeys.length === file.dnskeys.size && dnskeys.every((key) => file.dnskeys.has(key))
    return areSame ? this.#reasonOfTime(file) : 'its keys have changed'
  }

  /** The file may have been edited before this process began. */
  #hasNewSource(signed: string): boolean {
    if (this.#sources !== undefined) return haveChanged(this.#sources)
    const sourceMs = statIfAny(this.#config.path)?.mtimeMs ?? 0
    return sourceMs > (statIfAny(signed)?.mtimeMs ?? 0)
  }

  #reasonOfTime({ inceptionSeconds, expirationSeconds }: SignedFile): string {
    const now = Math.floor(this.#c.clock.now() / 1000)
    if (now - inceptionSeconds > AGE_SECONDS_MAX)
      return `its signatures began at ${printTime(inceptionSeconds)}, more than 6 days ago`
    if (expirationSeconds - now < LEFT_SECONDS_MIN)
      return `its signatures expire at ${printTime(expirationSeconds)}, in less than 14 days`
    return ''
  }

  /** Returns the serial of the signed version. @throws InputError, or the system's error. */
  async #sign(keys: ZoneKeys): Promise<number> {
    const { clock } = this.#c
    const { signed, zone: apex } = this.#config
    const { view: source, files } = await this.#load()
    const image = new ZoneImage()
    const zone = image.addZone(apex)
    const nothing = (): void => {}
    const content = {
      source,
      changed: undefined,
      published: undefined,
      image,
      zone,
      unpublished: [],
    }
    await runInSlices(putContent(content, nothing), clock)
    const serial = this.#nextSerial()
    image.putRRset(zone, apex, soaWithSerial(source, serial))
    const fixed = { find: () => keys, subscribe: () => nothing, notePublished: nothing }
    const signer = new ZoneSigner(image, zone, apex, { keys: fixed, policy: this.#policy }, this.#c)
    try {
      await signer.sign()
    } finally {
      signer.close()
    }
    image.publish()
    if (this.#isStopped) return serial
    const { buffer } = image.handle
    const view = VersionView.open({ zone: apex, serial, buffer, imageVersion: image.version })!
    await runInSlices(writeZoneFile(signed, view), clock)
    this.#sources = files
    return serial
  }

  async #load(): Promise<{ view: VersionView; files: readonly FileStamp[] }> {
    const { clock, log } = this.#c
    const { path, zone } = this.#config
    const load = await loadWithoutPause({ path, apex: zone, options: { memoryMax: 'left' } }, clock)
    if (load.kind === 'failed') throw load.errors[0]!
    if (load.kind === 'unreadable') throw load.error
    if (load.kind === 'unchanged') throw new InputError(undefined, `${path} was not read`)
    // Faults of signatures that the file may have do not matter.
    const warnings = load.warnings.filter((warning) => warning !== load.signatures.warning)
    for (const warning of warnings) log.warning(warning.print(), 'sign-source-warning')
    const { buffer, version: imageVersion } = load.image
    const view = VersionView.open({ zone, serial: load.serial, buffer, imageVersion })
    if (view?.soa() === undefined) throw new InputError(undefined, `${path} has no SOA`)
    return { view, files: load.files }
  }

  /** The Unix time, as CoreDNS, but always after the serial of the file that is replaced. */
  #nextSerial(): number {
    const now = Math.floor(this.#c.clock.now() / 1000) >>> 0
    const before = this.#signed?.file
    if (before === undefined || typeof before === 'string') return now
    return isSerialAfter(now, before.serial) ? now : (before.serial + 1) >>> 0 || 1
  }

  #fail(error: unknown): void {
    if (error instanceof InputError) this.#report(error.print())
    else this.#report(error instanceof Error ? error.message : String(error))
  }

  #report(fault: string): void {
    if (fault !== this.fault)
      this.#c.log.warning(
        `Error signing ${JSON.stringify(this.#zoneText)}: ${fault}`,
        'sign-failed',
      )
    this.fault = fault
  }
}

function printTime(seconds: number): string {
  return new Date(seconds * 1000).toISOString()
}
