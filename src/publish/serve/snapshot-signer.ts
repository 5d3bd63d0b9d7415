import type { Clock } from '../../base/clock.ts'
import { runInSlices } from '../../base/slices.ts'
import { guarding } from '../../base/telemetry/guard.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { MetricsRegistry } from '../../base/telemetry/metrics.ts'
import type { Timers } from '../../base/timers.ts'
import { RRType } from '../../dns/iana/types.ts'
import { nameKey, printName } from '../../dns/name/name.ts'
import type { SignedZone } from '../../signing/registry.ts'
import { measureSigning } from '../../signing/signing-report.ts'
import { takeBack } from '../../signing/zone/take-back.ts'
import type { ZoneId } from '../../zone/image/types.ts'
import type { ZoneImage } from '../../zone/image/writer.ts'
import type { PublishOptions } from '../options.ts'
import type { SerialFile } from '../zone/serials/serial-file.ts'
import type { ContentSerial, SerialIndex } from '../zone/serials/serial-index.ts'
import { reportSigning } from '../zone/signing/zone-reports.ts'
import { ZoneSignatures } from '../zone/signing/zone-signatures.ts'
import { composeSoa, SOA_TTL_SECONDS } from '../zone/soa.ts'
import { mailboxOf, primaryOf } from '../zone/zone-content.ts'

/** How often a zone that could not be signed is looked at again. */
const RETRY_MS = 1000

interface SnapshotSignerParts {
  readonly image: ZoneImage
  readonly serials: SerialIndex
  readonly serialFile: SerialFile | undefined
  /** See `PublishedZonesParts`. */
  readonly place: string
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
  readonly metrics: MetricsRegistry
}

/** A signed zone of a snapshot. */
interface SnapshotZone {
  readonly apex: Uint8Array
  readonly id: ZoneId
  readonly text: string
  readonly isServed: true
  readonly signatures: ZoneSignatures
}

/**
 * Keeps the zones of a snapshot signed while their records cannot be read, which may last longer than their signatures.
 * Each version has a new serial. Their other content stays as it is.
 */
export class SnapshotSigner {
  readonly zones: readonly SnapshotZone[]
  readonly #options: PublishOptions
  readonly #parts: SnapshotSignerParts
  readonly #due = new Set<SnapshotZone>()
  readonly #stops: readonly (() => void)[]
  #facts: readonly ContentSerial[]
  #working: Promise<void> | undefined
  #isClosed = false

  /** `facts`: of the zones in the image. */
  constructor(
    options: PublishOptions,
    facts: readonly ContentSerial[],
    parts: SnapshotSignerParts,
  ) {
    this.#options = options
    this.#parts = parts
    this.#facts = facts
    this.zones = options.zones.flatMap((apex) => {
      const signed = options.signed?.get(nameKey(apex))
      return signed === undefined ? [] : (this.#open(apex, signed) ?? [])
    })
    this.#stops = [
      parts.timers.every(RETRY_MS, () => this.#retry()),
      measureSigning(parts.metrics, () => reportSigning(this.zones)),
    ]
  }

  /** What the image has now. */
  get facts(): readonly ContentSerial[] {
    return this.#facts
  }

  /** Undefined = the image does not have the zone. */
  serialOf(zone: string): number | undefined {
    return this.#facts.find((one) => one.zone === zone)?.serial
  }

  /** Resolves once the image is published, and another writer may use it. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const stop of this.#stops) stop()
    for (const { signatures } of this.zones) signatures.close()
    await this.#working
  }

  #open(apex: Uint8Array, signed: SignedZone): SnapshotZone | undefined {
    const { image, clock, timers, log } = this.#parts
    const text = printName(apex)
    const id = image.findZone(apex)
    const known = this.#facts.find((one) => one.zone === text)
    if (id === undefined || known === undefined) return undefined
    const signatures = new ZoneSignatures(apex, signed, {
      ...{ zone: text, image, clock, timers, log },
      generation: known.digest.split('/')[1],
      // Versions are offered to secondaries once records are read.
      onChanged: () => {},
      onDue: () => this.#note(zone),
    })
    const zone: SnapshotZone = { apex, id, text, isServed: true, signatures }
    signatures.open(id, true)
    return zone
  }

  #note(zone: SnapshotZone): void {
    this.#due.add(zone)
    const guarded = guarding(this.#parts.log, 'Signing the zones of the snapshot')
    this.#working ??= guarded(() => this.#work()).finally(() => {
      this.#working = undefined
    })
  }

  #retry(): void {
    for (const zone of this.zones) {
      zone.signatures.logFault(true)
      if (zone.signatures.isRetryDue || this.#due.has(zone)) this.#note(zone)
    }
  }

  /** One zone at a time: they have one image. */
  async #work(): Promise<void> {
    for (const zone of this.#due) {
      this.#due.delete(zone)
      if (!this.#isClosed && zone.signatures.refusal === '') await this.#sign(zone)
    }
  }

  async #sign({ apex, id, text, signatures }: SnapshotZone): Promise<void> {
    const { image, serials, serialFile, place, clock, log } = this.#parts
    const known = this.#facts.find((one) => one.zone === text)!
    signatures.renew()
    const [content, , ...rest] = known.digest.split('/')
    const digest = [content, signatures.generation, ...rest].join('/')
    serialFile?.catchUp()
    const serial = serials.serialFor({ zone: text, place, digest }, clock.now())
    serialFile?.save([text])
    try {
      const mailbox = mailboxOf(apex, this.#options, () => {})
      const soa = composeSoa(primaryOf(apex, this.#options), mailbox, serial)
      const set = { type: RRType.SOA, ttlSeconds: SOA_TTL_SECONDS, rdata: [soa] }
      if (image.putRRset(id, apex, set)) signatures.note(apex, RRType.SOA)
      await signatures.sign()
    } catch (error) {
      signatures.noteFault(error)
      await runInSlices(takeBack(image, id, apex), clock)
      image.publish()
      return
    }
    image.publish()
    this.#facts = this.#facts.map((one) => (one === known ? { zone: text, digest, serial } : one))
    signatures.published()
    log.info(
      `zone ${text}: signatures of the snapshot were made again, serial ${serial}`,
      'snapshot-signed',
    )
  }
}
