import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import { RRType } from '../../dns/iana/types.ts'
import { nameKey, printName } from '../../dns/name/name.ts'
import type { HealthView } from '../../health/health-table.ts'
import type { LocalExporter } from '../../peering/local-exporter.ts'
import { isLocalZone } from '../../records/local-zone.ts'
import type { SteeringTable } from '../../steering/table.ts'
import { DECLARED_NAME } from '../../zone/image/replacement.ts'
import type { ZoneId } from '../../zone/image/types.ts'
import type { ZoneImage } from '../../zone/image/writer.ts'
import type { AnswerEvents } from '../build/answer-events.ts'
import type { RecordZone } from '../build/record-zone.ts'
import type { RecordZoneOptions, RRsetSink } from '../build/record-zone-options.ts'
import type { PublishOptions } from '../options.ts'
import type { EndpointCounters } from './endpoint-counters.ts'
import { ImageSink } from './image-sink.ts'
import type { Leftovers } from './leftovers.ts'
import type { OfferedVersions } from './offered-versions.ts'
import type { SerialIndex } from './serials/serial-index.ts'
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
  readonly log: Logger
  /** Logs what changes answers. */
  readonly events: AnswerEvents
  /** Undefined = endpoints are not counted. */
  readonly counters?: EndpointCounters | undefined
}

type ZoneCallbacks = Pick<RecordZoneOptions, 'onConflict' | 'onOut' | 'isComplete'>

/** A zone of a publisher: its records, its RRsets in the zone image, and its serial. */
export class PublishedZone {
  /** Lower-case wire form. */
  readonly apex: Uint8Array
  readonly key: string
  readonly text: string
  readonly id: ZoneId
  readonly records: RecordZone
  serial = 0
  readonly #parts: PublishedZoneParts
  readonly #leftovers: Leftovers
  readonly #mname: Uint8Array
  readonly #rname: Uint8Array
  /** Digest of the content that `serial` stands for; '' before the first commit. */
  #digest = ''

  /** Creates a zone that contains only the data from the options. */
  constructor(
    apex: Uint8Array,
    options: PublishOptions,
    parts: PublishedZoneParts,
    leftovers: Leftovers,
    callbacks: ZoneCallbacks,
  ) {
    const { image, log, exporter, health, events } = parts
    this.apex = apex
    this.key = nameKey(apex)
    this.text = printName(apex)
    this.#parts = parts
    this.#leftovers = leftovers
    this.id = image.findZone(apex) ?? image.addZone(apex)
    this.#mname = primaryOf(apex, options)
    this.#rname = mailboxOf(apex, options, (warning) => log.warning(warning, 'zone-warning'))
    this.records = createRecordZone(apex, options, {
      ...{ sink: this.#sink(), health, exporter },
      onChange: (change) => events.note(this.text, change),
      onStates: (change) => events.noteStates(this.text, change),
      ...callbacks,
    })
  }

  /** The content and its serial, for a snapshot. */
  get facts(): { zone: string; digest: string; serial: number } {
    return { zone: this.text, digest: this.#digestWithSoa(), serial: this.serial }
  }

  /** True if the content differs from the content that `serial` stands for. */
  get isChanged(): boolean {
    return this.#contentDigest() !== this.#digest
  }

  /** Gives the content its serial. */
  raiseSerial(): void {
    const { image, serials, place, clock } = this.#parts
    this.#digest = this.#contentDigest()
    const content = { zone: this.text, place, digest: this.#digestWithSoa() }
    this.serial = serials.serialFor(content, clock.now())
    const soa = composeSoa(this.#mname, this.#rname, this.serial)
    const set = { type: RRType.SOA, ttlSeconds: SOA_TTL_SECONDS, rdata: [soa] }
    image.putRRset(this.id, this.apex, set)
  }

  #contentDigest(): string {
    const count = this.#leftovers.countOf(this.id)
    return count === 0 ? this.records.digest : `${this.records.digest}+${count}`
  }

  /** Returns a digest of everything that is served of the zone except the serial. */
  #digestWithSoa(): string {
    return `${this.#digest}/${printName(this.#mname)}/${printName(this.#rname)}`
  }

  #sink(): RRsetSink {
    const { image, table, versions, counters } = this.#parts
    const { id: zone, apex, text } = this
    // In the gateway-local form, answers are data for peers.
    const isCounted = counters !== undefined && !isLocalZone(apex)
    const counted = isCounted ? { counters, zone: text } : undefined
    const sink = new ImageSink(image, zone, table, counted)
    return {
      put: (owner, set) => {
        sink.put(owner, set)
        versions.note(zone, owner, set.type)
        this.#leftovers.settle({ zone, owner, type: set.type })
      },
      rename: (owner, set) => sink.rename(owner, set),
      remove: (owner, type) => {
        sink.remove(owner, type)
        versions.note(zone, owner, type)
        this.#leftovers.settle({ zone, owner, type })
      },
      declare: (owner, isDeclared) => {
        sink.declare(owner, isDeclared)
        this.#leftovers.settle({ zone, owner, type: DECLARED_NAME })
      },
    }
  }
}
