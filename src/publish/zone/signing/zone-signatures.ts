import { randomBytes } from 'node:crypto'
import type { Clock } from '../../../base/clock.ts'
import type { Logger } from '../../../base/telemetry/log.ts'
import type { SigningReport } from '../../../base/telemetry/status.ts'
import type { Timers } from '../../../base/timers.ts'
import { equalNames } from '../../../dns/name/name.ts'
import type { SignedZone } from '../../../signing/registry.ts'
import { printSigningFault } from '../../../signing/signing-report.ts'
import { ZoneSigner } from '../../../signing/zone/zone-signer.ts'
import type { ZoneId } from '../../../zone/image/types.ts'
import type { ZoneImage } from '../../../zone/image/writer.ts'
import { RefusedSets } from './refused-sets.ts'

const NOTHING_SIGNED = { made: 0, reused: 0, expiresSeconds: undefined }
/** When signing is tried again that failed: the first time, and at most. */
const RETRY_MS = 1000
const RETRY_MS_MAX = 60_000
const NO_KEYS = 'it has no usable keys; see the faults that dnssec reports'

interface ZoneSignaturesParts {
  /** Presentation form. */
  readonly zone: string
  readonly image: ZoneImage
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
  /** `generation` of the signatures that the image has from an earlier process or configuration; undefined = none. */
  readonly generation: string | undefined
  /** Called with each RRset of signatures, keys or denial that was put or removed. */
  readonly onChanged: (owner: Uint8Array, type: number) => void
  /** Called when signatures have to be made again, and when keys changed. */
  readonly onDue: () => void
}

/** The signatures of one zone in the zone image, and the mark of their version. */
export class ZoneSignatures {
  readonly #apex: Uint8Array
  readonly #signed: SignedZone
  readonly #parts: ZoneSignaturesParts
  readonly #stopKeys: () => void
  #signer: ZoneSigner | undefined
  #isChanged = false
  readonly refused: RefusedSets
  /** Why signing failed although nothing refused it; '' = it did not. */
  #fault = ''
  #retryMs = 0
  #delayMs = RETRY_MS
  #loggedFault = ''
  /**
   * Part of the digest of the zone: signatures that are made again change it, so that they get a new serial. Those of a
   * snapshot have that of the snapshot.
   */
  generation: string

  constructor(apex: Uint8Array, signed: SignedZone, parts: ZoneSignaturesParts) {
    this.#apex = apex
    this.#signed = signed
    this.#parts = parts
    this.refused = new RefusedSets(parts.log)
    this.generation = parts.generation ?? newGeneration()
    this.#stopKeys = signed.keys.subscribe((zone) => {
      if (this.#signer === undefined && equalNames(zone, apex)) parts.onDue()
    })
  }

  /** Why the zone cannot be signed now, and the fix; '' = it can, or it is time to try again what failed. */
  get refusal(): string {
    if (this.#fault !== '' && this.#parts.clock.monotonic() < this.#retryMs) return this.#fault
    if (this.#signer !== undefined) return this.#signer.refusal
    return this.#signed.keys.find(this.#apex) === undefined ? NO_KEYS : ''
  }

  /** Why changes of the zone are not published, and the fix; '' = they are. */
  get fault(): string {
    return this.#fault || this.refusal
  }

  /** True if signing failed, and may be tried again now. */
  get isRetryDue(): boolean {
    return this.#fault !== '' && this.refusal === ''
  }

  /** How the zone is signed. */
  get report(): Omit<SigningReport, 'zone'> {
    const { name: policy, denial } = this.#signed.policy
    const { made, reused, expiresSeconds } = this.#signer?.state ?? NOTHING_SIGNED
    const expires = expiresSeconds === undefined ? null : printSeconds(expiresSeconds)
    return { policy, denial, made, reused, expires, fault: this.fault }
  }

  /** True if signatures changed since the last `renew` or `published`. */
  get isChanged(): boolean {
    return this.#isChanged
  }

  /** Begins to sign the zone, which is in the image now. `isSigned`: the image has a whole signed version. */
  open(zone: ZoneId, isSigned = false): void {
    const { image, clock, timers, log, onDue } = this.#parts
    const signer = new ZoneSigner(image, zone, this.#apex, this.#signed, {
      ...{ clock, timers, log },
      onChanged: (owner, type) => {
        this.#isChanged = true
        this.#parts.onChanged(owner, type)
      },
    })
    signer.onDue(onDue)
    this.#signer = signer
    if (isSigned) signer.noteSigned()
  }

  /** Ends what `open` began, after the zone was removed from the image. */
  reset(): void {
    this.#signer?.close()
    this.#signer = undefined
  }

  note(owner: Uint8Array, type: number): void {
    this.#signer?.note(owner, type)
  }

  noteAll(): void {
    this.#signer?.noteAll()
  }

  /** Signs the unpublished content: see `ZoneSigner`. */
  sign(): Promise<void> | undefined {
    return this.#signer?.sign()
  }

  /** Notes that signing failed although nothing refused it. The next try is later each time. */
  noteFault(error: unknown): void {
    const { clock, log } = this.#parts
    this.#fault = error instanceof Error ? error.message : String(error)
    if (error instanceof Error && error.stack !== undefined) log.debug(error.stack, 'stack')
    this.#retryMs = clock.monotonic() + this.#delayMs
    this.#delayMs = Math.min(2 * this.#delayMs, RETRY_MS_MAX)
  }

  /** Logs once why the zone can't be signed, and once when it can again. `isServed`: the zone has a signed version. */
  logFault(isServed: boolean): void {
    const { log, zone } = this.#parts
    const { fault } = this
    if (fault === this.#loggedFault) return
    this.#loggedFault = fault
    if (fault === '') log.info(`zone ${zone} can be signed again`, 'zone-signed-again', { zone })
    else log.error(printSigningFault(zone, fault, isServed), 'zone-not-signed', { zone })
  }

  /** Marks signatures that differ although the content is the same. */
  renew(): void {
    this.generation = newGeneration()
    this.#isChanged = false
  }

  /** Notes that the signatures are served. */
  published(): void {
    this.#isChanged = false
    this.#fault = ''
    this.#delayMs = RETRY_MS
    this.#signer?.notePublished()
  }

  close(): void {
    this.#stopKeys()
    this.#signer?.close()
  }
}

function newGeneration(): string {
  return randomBytes(9).toString('base64url')
}

function printSeconds(seconds: number): string {
  return new Date(seconds * 1000).toISOString()
}
