import type { Clock } from '../../base/clock.ts'
import { InputError } from '../../base/errors.ts'
import { runInSlices } from '../../base/slices.ts'
import { type Guarded, guarding } from '../../base/telemetry/guard.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import { RRType } from '../../dns/iana/types.ts'
import { printName } from '../../dns/name/name.ts'
import { printSigningFault } from '../../signing/signing-report.ts'
import type { ZoneSigner } from '../../signing/zone/zone-signer.ts'
import { VersionView } from '../../xfr/journal/version-view.ts'
import type { SetKey } from '../../xfr/zone-versions.ts'
import type { ZoneId } from '../../zone/image/types.ts'
import { type CapturedImage, ZoneImage } from '../../zone/image/writer.ts'
import { nextVersion, type VersionMemory } from '../version-memory.ts'
import { signedSerial } from './signed-serial.ts'
import { checkUnsigned, putContent, soaWithSerial } from './source-content.ts'

/** A version of the zone without signatures; its memory does not change. */
interface SourceVersion {
  readonly buffer: SharedArrayBuffer
  readonly imageVersion: number
  readonly serial: number
}

/** A signed version that another process or instance published. */
export interface SignedVersion {
  readonly image: ZoneImage
  /** Of its SOA. */
  readonly serial: number
  /** Of the source that it was made of. */
  readonly sourceSerial: number
}

/** What makes signatures: see `ZoneSigner`. */
interface ContentSigner {
  /** Why it cannot sign now; '' = it can. */
  readonly refusal: string
  readonly isDue: boolean
  readonly state: ZoneSigner['state']
  note(owner: Uint8Array, type: number): void
  noteAll(): void
  sign(): Promise<void> | undefined
  /** What was signed last is served. */
  notePublished(): void
  onDue(listener: () => void): () => void
  close(): void
}

interface InlineSignerParts {
  /** Apex, lower-case wire form. */
  readonly zone: Uint8Array
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
  readonly createSigner: (
    image: ZoneImage,
    zone: ZoneId,
    onChanged: (owner: Uint8Array, type: number) => void,
  ) => ContentSigner
  /** Returns the version to start with, if another instance or process published one. Called once. */
  readonly resume: () => Promise<SignedVersion | undefined>
  /** Called when another version is published. */
  readonly onPublish: () => void
}

/** When signing is tried again that failed. */
const RETRY_MS = 60_000

/** What is left of a step: an object, because an asynchronous function would wait for a promise. */
interface Rest {
  readonly signed: Promise<void>
}

/** A version that is being signed. */
interface Work {
  readonly source: SourceVersion
  readonly view: VersionView
  readonly target: Target
  readonly serial: number
}

/** The image of the signed zone, with its signer. */
interface Target {
  readonly image: ZoneImage
  readonly zone: ZoneId
  readonly signer: ContentSigner
}

/**
 * Signs the versions of one zone that comes from elsewhere without signatures:
 *
 *     version of the source ─▶ RRsets that differ ─▶ image of the signed zone ─▶ signer ─▶ publish
 *
 * Signatures of all other RRsets stay as they are. New keys and signatures that expire soon make new versions too, so
 * the serial is not that of the source (see `signedSerial`). If a version cannot be signed, the last one is served.
 */
export class InlineSigner {
  /** The version that is served; undefined = none yet. */
  shared: VersionMemory | undefined
  /** Of the SOA that is served; -1 = none. */
  serial = -1
  /** The source that the served version was made of; -1 = none. */
  sourceSerial = -1
  /** Changes since the version before; undefined = anything may have changed. */
  changed: readonly SetKey[] | undefined
  /** The served version as plain data; undefined = none. */
  captured: CapturedImage | undefined
  /** Why the newest version of the source, or a refresh, is not served; '' = it is. */
  fault = ''
  readonly #parts: InlineSignerParts
  readonly #zoneText: string
  readonly #guarded: Guarded
  #target: Target | undefined
  /** The newest version of the source, and the one that the image has. */
  #source: SourceVersion | undefined
  #applied: SourceVersion | undefined
  /** RRsets in which the two may differ; undefined = any may differ. */
  #differing: SetKey[] | undefined
  /** RRsets that may differ from the published version. */
  #unpublished: SetKey[] = []
  #hasResumed = false
  #stopTimer = (): void => {}
  #isBusy = false
  #finished: Promise<void> = Promise.resolve()
  /** Something happened since the work that is under way began. */
  #isOutdated = false
  #isStopped = false

  constructor(parts: InlineSignerParts) {
    this.#parts = parts
    this.#zoneText = printName(parts.zone)
    this.#guarded = guarding(parts.log, `Signing zone ${this.#zoneText}`)
  }

  /**
   * Signs and publishes a version of the source. Resolves once it is published, or many signatures are being made, or
   * `fault` says why it is not. `changed`: the RRsets that may differ from the source before, so that no others need
   * a look; undefined = any may differ.
   */
  async take(source: SourceVersion, changed?: readonly SetKey[]): Promise<void> {
    this.#source = source
    if (changed === undefined) this.#differing = undefined
    else for (const key of changed) this.#differing?.push(key)
    await this.#update()
  }

  /** Ends the service of the zone: its source has expired. */
  drop(): void {
    this.#source = undefined
    this.#forget()
  }

  stop(): void {
    this.#isStopped = true
    this.#stopTimer()
    this.#target?.signer.close()
  }

  /** Resolves once signatures that are being made are published. */
  async finished(): Promise<void> {
    await this.#finished
  }

  /** What the signer has done; undefined = nothing yet. */
  get state(): ZoneSigner['state'] | undefined {
    return this.#target?.signer.state
  }

  /** `fault` with the zone and what is served meanwhile. */
  get problem(): string {
    return this.#print(this.fault)
  }

  /** Reports that nothing can be signed now, also if nothing is due. */
  check(): void {
    const refusal = this.#target?.signer.refusal ?? ''
    if (refusal !== '' && this.fault === '' && !this.#isBusy) this.#fail(refusal)
  }

  /** Tries again what could not be done, or is due. */
  readonly retry = (): void => {
    void this.#guarded(() => this.#update())
  }

  async #update(): Promise<void> {
    if (this.#isBusy) {
      this.#isOutdated = true
      return
    }
    this.#isBusy = true
    let rest: Rest | undefined
    try {
      do {
        this.#isOutdated = false
        rest = await this.#advance()
      } while (rest === undefined && this.#isOutdated)
    } finally {
      if (rest === undefined) this.#isBusy = false
    }
    if (rest !== undefined) this.#finished = this.#guarded(() => this.#finish(rest))
  }

  /** Waits until many signatures are made. Queries are answered from the last version meanwhile. */
  async #finish({ signed }: Rest): Promise<void> {
    try {
      await signed
    } finally {
      this.#isBusy = false
    }
    if (this.#isOutdated) await this.#update()
  }

  /** Does one step; returns the rest of it, if it takes long. */
  async #advance(): Promise<Rest | undefined> {
    const source = this.#source
    if (this.#isStopped || source === undefined) return undefined
    try {
      const target = this.#target ?? (await this.#resume())
      if (this.#isStopped || source !== this.#source) return undefined
      const { refusal } = target.signer
      if (refusal !== '') return this.#fail(refusal)
      const view = this.#viewOf(source)
      const isNew = source !== this.#applied
      if (isNew) await this.#put(view, target)
      if (this.#isStopped || source !== this.#source) return undefined
      const isRaised = this.#isChanged(source) || target.signer.isDue
      const serial = isRaised ? this.#raise(view, target) : this.serial
      const work = { source, view, target, serial }
      const signing = target.signer.sign()
      if (signing === undefined) return await this.#complete(work)
      const signed = signing
        .then(() => this.#complete(work))
        .catch((error: unknown) => this.#reject(error))
      return { signed }
    } catch (error) {
      return this.#reject(error)
    }
  }

  async #put(view: VersionView, { image, zone, signer }: Target): Promise<void> {
    const { clock } = this.#parts
    const changed = this.#differing && [...this.#differing]
    await runInSlices(checkUnsigned(view, changed), clock)
    const published = this.#published()
    const unpublished = [...this.#unpublished]
    const content = { source: view, changed, published, image, zone, unpublished }
    const note = (owner: Uint8Array, type: number): void => {
      signer.note(owner, type)
      this.#unpublished.push({ owner, type })
    }
    await runInSlices(putContent(content, note), clock)
    // Its other fields may differ, even with the same serial.
    if (this.serial !== -1 && image.putRRset(zone, view.zone, soaWithSerial(view, this.serial)))
      note(view.zone, RRType.SOA)
  }

  /** Whether the zone needs another serial before it is signed. */
  #isChanged(source: SourceVersion): boolean {
    const isKnown = this.serial !== -1 && this.#unpublished.length === 0
    return !isKnown || source.serial !== this.sourceSerial
  }

  /** Puts the SOA with another serial, and returns that. */
  #raise(view: VersionView, { image, zone, signer }: Target): number {
    const { clock, zone: apex } = this.#parts
    const previous = this.serial === -1 ? undefined : this.serial
    const serial = signedSerial(view.serial, Math.floor(clock.now() / 1000), previous)
    if (image.putRRset(zone, apex, soaWithSerial(view, serial))) signer.note(apex, RRType.SOA)
    return serial
  }

  /** Publishes what is signed. */
  async #complete({ source, view, target, serial: signed }: Work): Promise<undefined> {
    const { image, signer } = target
    if (this.#isStopped || this.#target !== target) return
    let serial = signed
    // After a restart, only the signer finds out that it must replace something.
    if (serial === this.serial && this.#unpublished.length > 0) {
      serial = this.#raise(view, target)
      await signer.sign()
      if (this.#isStopped || this.#target !== target) return
    }
    const isFirst = this.shared === undefined
    this.#applied = source
    // What changed in a newer source since then was added to the rest.
    if (source === this.#source) this.#differing = []
    this.#report('')
    // Also without changes: the chain of proofs may be written again.
    image.publish()
    if (!isFirst && this.#unpublished.length === 0) return this.#share(image)
    this.changed = isFirst ? undefined : this.#unpublished
    this.#unpublished = []
    this.serial = serial
    this.sourceSerial = source.serial
    this.#share(image)
    this.#parts.onPublish()
    signer.notePublished()
  }

  #share(image: ZoneImage): undefined {
    this.captured = image.capture()
    const { buffer } = image.handle
    if (this.shared?.buffer !== buffer) this.shared = { version: nextVersion(), buffer }
  }

  /** Opens the image. Starts from one that exists, so that only what is new must be signed. */
  async #resume(): Promise<Target> {
    const found = this.#hasResumed ? undefined : await this.#parts.resume()
    this.#hasResumed = true
    const zone = found?.image.findZone(this.#parts.zone)
    if (found === undefined || zone === undefined) return this.#open()
    this.serial = found.serial
    this.sourceSerial = found.sourceSerial
    const target = this.#open(found.image, zone)
    // Served until the differences are signed: that takes long for a large zone.
    this.#share(found.image)
    this.#parts.onPublish()
    return target
  }

  /** Starts from an image, or an empty one. */
  #open(image: ZoneImage = new ZoneImage(), found?: ZoneId): Target {
    const { zone: apex, createSigner } = this.#parts
    const zone = found ?? image.addZone(apex)
    const onChanged = (owner: Uint8Array, type: number): void => {
      this.#unpublished.push({ owner, type })
    }
    const signer = createSigner(image, zone, onChanged)
    signer.noteAll()
    signer.onDue(this.retry)
    this.#target = { image, zone, signer }
    this.#unpublished = []
    this.#applied = undefined
    this.#differing = undefined
    return this.#target
  }

  #forget(): void {
    this.#target?.signer.close()
    this.#target = undefined
    this.#applied = undefined
    this.#differing = undefined
    this.shared = undefined
    this.captured = undefined
    this.changed = undefined
    this.serial = -1
    this.sourceSerial = -1
  }

  #published(): VersionView | undefined {
    const { image } = this.#target!
    if (image.version === 0) return undefined
    const { buffer } = image.handle
    const { zone } = this.#parts
    return VersionView.open({ zone, serial: this.serial, buffer, imageVersion: image.version })
  }

  #viewOf(source: SourceVersion): VersionView {
    const view = VersionView.open({ zone: this.#parts.zone, ...source })
    if (view?.soa() === undefined) throw new InputError(undefined, 'the source has no SOA')
    return view
  }

  /** The image stays as it is: what was put is put again, or removed, with the next version. */
  #reject(error: unknown): undefined {
    if (error instanceof InputError) return this.#fail(error.print())
    if (error instanceof Error && error.stack !== undefined)
      this.#parts.log.debug(error.stack, 'stack')
    return this.#fail(error instanceof Error ? error.message : String(error))
  }

  #fail(reason: string): undefined {
    // The content may be incomplete, so it must be put again before anything is published.
    this.#applied = undefined
    this.#differing = undefined
    this.#report(reason)
    this.#stopTimer()
    this.#stopTimer = this.#parts.timers.after(RETRY_MS, this.retry)
  }

  #report(fault: string): void {
    if (fault === this.fault) return
    this.fault = fault
    if (fault !== '') this.#parts.log.error(this.#print(fault), 'zone-not-signed')
    else this.#parts.log.info(`zone ${this.#zoneText} can be signed again`, 'zone-signed-again')
  }

  #print(fault: string): string {
    return printSigningFault(this.#zoneText, fault, this.shared !== undefined)
  }
}
