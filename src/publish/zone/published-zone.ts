import type { Clock } from '../../base/clock.ts'
import { runInSlices } from '../../base/slices.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import { RRType } from '../../dns/iana/types.ts'
import { nameKey, printName } from '../../dns/name/name.ts'
import type { HealthView } from '../../health/health-table.ts'
import type { LocalExporter } from '../../peering/local-exporter.ts'
import { isLocalZone } from '../../records/local-zone.ts'
import type { SignedZone } from '../../signing/registry.ts'
import { takeBack } from '../../signing/zone/take-back.ts'
import type { SteeringTable } from '../../steering/table.ts'
import type { Leftover } from '../../zone/image/replacement.ts'
import type { ZoneId } from '../../zone/image/types.ts'
import type { ZoneImage } from '../../zone/image/writer.ts'
import { MADE_BY_SIGNERS } from '../../zone/zonefile/unsigned-zone.ts'
import type { AnswerEvents } from '../build/answer-events.ts'
import type { RecordZone } from '../build/record-zone.ts'
import type { RecordZoneOptions } from '../build/record-zone-options.ts'
import type { PublishOptions } from '../options.ts'
import { ContentSink } from './content-sink.ts'
import type { EndpointCounters } from './endpoint-counters.ts'
import { ImageSink } from './image-sink.ts'
import type { Leftovers } from './leftovers.ts'
import type { OfferedVersions } from './offered-versions.ts'
import type { ContentSerial, SerialIndex } from './serials/serial-index.ts'
import { HeldSink } from './signing/held-sink.ts'
import { ZoneSignatures } from './signing/zone-signatures.ts'
import { composeSoa, SOA_TTL_SECONDS } from './soa.ts'
import { createRecordZone, mailboxOf, primaryOf } from './zone-content.ts'

/** What a zone needs of its publisher. */
export interface PublishedZoneParts {
  readonly image: ZoneImage
  readonly table: SteeringTable
  readonly health: HealthView
  readonly serials: SerialIndex
  /** Where `transfer` finds the zones. */
  readonly versions: OfferedVersions
  /** Exports whole endpoints to other sites; undefined = nothing is exported. */
  readonly exporter?: LocalExporter | undefined
  /** Distinguishes the publisher from others with the same zone. Contains no white space. */
  readonly place: string
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
  /** Logs what changes answers. */
  readonly events: AnswerEvents
  /** Undefined = endpoints are not counted. */
  readonly counters?: EndpointCounters | undefined
  /** What the image has of an earlier process or configuration; missing = it is empty. */
  readonly earlier?: readonly ContentSerial[] | undefined
}

interface ZoneCallbacks extends Pick<RecordZoneOptions, 'onConflict' | 'onOut' | 'isComplete'> {
  /** The zone must be published again although no record changed. */
  readonly onDue: () => void
}

/** A zone of a publisher: its records, its RRsets and signatures in the zone image, and its serial. */
export class PublishedZone {
  /** Lower-case wire form. */
  readonly apex: Uint8Array
  readonly key: string
  readonly text: string
  readonly records: RecordZone
  /** Undefined = the zone is not signed. */
  readonly signatures: ZoneSignatures | undefined
  /** 0 = the zone has no version yet. */
  serial: number
  readonly #parts: PublishedZoneParts
  readonly #leftovers: Leftovers
  readonly #mname: Uint8Array
  readonly #rname: Uint8Array
  readonly #held: HeldSink | undefined
  /** The version of an earlier process or configuration, which is in force until the zone can be signed. */
  readonly #earlier: ContentSerial | undefined
  #content: ContentSink | undefined
  #id: ZoneId | undefined
  /** Digest of the content that `serial` stands for; '' before the first commit. */
  #digest = ''
  /** What is in force of `serial` and `#digest`. */
  #published: { readonly serial: number; readonly digest: string }
  /** Content passed since the last publish: what follows must not be held back. */
  #mayPass = false
  #isServed = false
  /** The zone has a new serial since the last publish. */
  #isRaised = false

  /** Creates a zone that contains only the data from the options. */
  constructor(
    apex: Uint8Array,
    options: PublishOptions,
    parts: PublishedZoneParts,
    leftovers: Leftovers,
    { onDue, ...callbacks }: ZoneCallbacks,
  ) {
    const { image, log, exporter, health, events } = parts
    this.apex = apex
    this.key = nameKey(apex)
    this.text = printName(apex)
    this.#parts = parts
    this.#leftovers = leftovers
    this.#mname = primaryOf(apex, options)
    this.#rname = mailboxOf(apex, options, (warning) => log.warning(warning, 'zone-warning'))
    const signed = options.signed?.get(this.key)
    this.#earlier = signed && parts.earlier?.find(({ zone }) => zone === this.text)
    this.serial = this.#earlier?.serial ?? 0
    this.#published = { serial: this.serial, digest: '' }
    this.#isServed = this.#earlier !== undefined
    this.signatures = signed && this.#openSignatures(signed, onDue)
    if (signed !== undefined)
      this.#held = new HeldSink(
        () => this.#openSink(),
        () => this.isHeld,
      )
    // A zone without content is not in the image: its queries get SERVFAIL.
    if (signed === undefined || image.findZone(apex) !== undefined) this.#openSink()
    this.records = createRecordZone(apex, options, {
      ...{ sink: this.#held ?? this.#openSink(), health, exporter },
      onChange: (change) => events.note(this.text, change),
      onStates: (change) => events.noteStates(this.text, change),
      ...callbacks,
    })
  }

  /** Undefined = the zone is not in the image, because it cannot be signed. */
  get id(): ZoneId | undefined {
    return this.#id
  }

  /** The content in the image and its serial, for a snapshot; undefined = the zone is not in the image. */
  get facts(): ContentSerial | undefined {
    if (this.#digest === '') return this.#earlier
    return { zone: this.text, digest: this.#digestOfAll(), serial: this.serial }
  }

  /** True if queries get a signed version, or an unsigned one of a zone that is not signed. */
  get isServed(): boolean {
    return this.#isServed
  }

  /** True while changes are held back, because the zone cannot be signed or could not be. */
  get isHeld(): boolean {
    if (this.signatures === undefined || this.#mayPass) return false
    this.#mayPass = this.#held?.isEmpty !== false && this.signatures.refusal === ''
    return !this.#mayPass
  }

  /** True if the content differs from the content that `serial` stands for. */
  get isChanged(): boolean {
    return this.#contentDigest() !== this.#digest
  }

  /** True if changes are held back although the zone can be signed now. */
  get isReleasable(): boolean {
    return this.#held?.isEmpty === false && this.signatures?.refusal === ''
  }

  /** True if signatures changed, but the serial did not since the last publish. */
  get needsSerial(): boolean {
    return this.signatures?.isChanged === true && !this.#isRaised
  }

  /** True for RRsets that the zone has although no record put them. */
  isMade({ zone, owner, type }: Leftover): boolean {
    if (this.signatures === undefined || zone !== this.#id) return false
    return MADE_BY_SIGNERS.has(type) || this.signatures.refused.has(owner, type)
  }

  /** Applies the changes that were held back. Meanwhile, no change may be applied. Rejects if the image is full. */
  async release(): Promise<void> {
    if (this.#held === undefined) return
    await runInSlices(this.#held.release(this.records), this.#parts.clock)
    this.#mayPass = true
  }

  /**
   * Makes the content of the image the published one again, or removes the zone that has none; holds its changes back.
   * Rejects if the image is full.
   */
  async takeBack(): Promise<void> {
    const { image, clock } = this.#parts
    this.#mayPass = false
    this.#isRaised = false
    if (this.#isServed) await runInSlices(takeBack(image, this.#id!, this.apex), clock)
    else if (this.#id !== undefined) this.#removeZone(this.#id)
    this.serial = this.#published.serial
    this.#digest = this.#published.digest
    this.#held?.takenBack()
  }

  /** Notes RRsets that were removed because no record has them. */
  noteRemoved({ owner, type }: Leftover): void {
    this.#held?.noteRemoved(owner, type)
    this.signatures?.note(owner, type)
  }

  /** Gives the content its serial. @throws InputError if the image is full. */
  raiseSerial(): void {
    const { image, serials, place, clock } = this.#parts
    const digest = this.#contentDigest()
    const content = { zone: this.text, place, digest: this.#digestOfAll(digest) }
    const serial = serials.serialFor(content, clock.now())
    const soa = composeSoa(this.#mname, this.#rname, serial)
    const set = { type: RRType.SOA, ttlSeconds: SOA_TTL_SECONDS, rdata: [soa] }
    const isPut = image.putRRset(this.#id!, this.apex, set)
    this.#digest = digest
    this.serial = serial
    if (!isPut) return
    this.#isRaised = true
    this.signatures?.note(this.apex, RRType.SOA)
  }

  /** Notes that the image was published. */
  published(): void {
    if (!this.isHeld) {
      this.#isServed = true
      this.#published = { serial: this.serial, digest: this.#digest }
      this.#held?.published()
      this.signatures?.published()
    }
    this.#mayPass = false
    this.#isRaised = false
  }

  #contentDigest(): string {
    const count = this.#id === undefined ? 0 : this.#leftovers.countOf(this.#id)
    const content = count === 0 ? this.records.digest : `${this.records.digest}+${count}`
    return this.signatures === undefined ? content : `${content}/${this.signatures.generation}`
  }

  /** Returns a digest of everything that is served of the zone except the serial. */
  #digestOfAll(digest = this.#digest): string {
    return `${digest}/${printName(this.#mname)}/${printName(this.#rname)}`
  }

  #openSink(): ContentSink {
    if (this.#content !== undefined) return this.#content
    const { image, table, versions, counters } = this.#parts
    const { apex, text, signatures } = this
    const zone = image.findZone(apex) ?? image.addZone(apex)
    this.#id = zone
    signatures?.open(zone)
    // In the gateway-local form, answers are data for peers.
    const isCounted = counters !== undefined && !isLocalZone(apex)
    const counted = isCounted ? { counters, zone: text } : undefined
    const accepts = signatures?.refused.accepts.bind(signatures.refused)
    const sink = new ImageSink(image, zone, table, counted, accepts)
    const leftovers = this.#leftovers
    this.#content = new ContentSink(zone, { sink, versions, leftovers, signatures })
    return this.#content
  }

  #removeZone(id: ZoneId): void {
    this.#parts.image.removeZone(id)
    this.#id = undefined
    this.#content = undefined
    this.signatures?.reset()
  }

  #openSignatures(signed: SignedZone, onDue: () => void): ZoneSignatures {
    const { image, clock, timers, log, versions } = this.#parts
    return new ZoneSignatures(this.apex, signed, {
      ...{ image, clock, timers, log, onDue },
      zone: this.text,
      generation: this.#earlier?.digest.split('/')[1],
      onChanged: (owner, type) => versions.note(this.#id!, owner, type),
    })
  }
}
