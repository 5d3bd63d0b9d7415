import type { Clock } from '../base/clock.ts'
import { type RecordContent, unpackRecord } from '../record/pack.ts'
import type { StoredRecord } from '../record/source.ts'
import type { PeerEndpoint } from './peer-endpoint.ts'
import { carrySince, toPeerEndpoints } from './to-peer-endpoint.ts'
import { composePeerEndpoint } from './v2-codec.ts'

/**
 * Tells the records of a source whole, with the time of each endpoint's last change: that of its record's
 * creation until it changes under our eyes. So a restart starts anew from there, and nothing needs to
 * be kept on a disk. To be shared by all zones of one source, and over reloads.
 */
export class LocalExporter {
  readonly #site: string
  readonly #clock: Pick<Clock, 'now'>
  /** Only of records that changed: times of their endpoints, in their order. */
  readonly #since = new WeakMap<StoredRecord, readonly number[]>()

  constructor(site: string, clock: Pick<Clock, 'now'>) {
    this.#site = site
    this.#clock = clock
  }

  /** Rdata for the TXT records of a record's host: a `ExportV2`. */
  composeRdata(
    record: StoredRecord,
    content: RecordContent,
    before: StoredRecord | undefined,
  ): Uint8Array[] {
    const exported = this.endpointsOf(record, content, before)
    return exported.map(composePeerEndpoint).filter((rdata) => rdata !== undefined)
  }

  /** The endpoints of a record, as `tell` tells them. */
  endpointsOf(
    record: StoredRecord,
    content: RecordContent,
    before: StoredRecord | undefined,
  ): PeerEndpoint[] {
    const { createdSeconds: sinceSeconds } = content
    const facts = { site: this.#site, down: record.down, up: record.up ?? [], sinceSeconds }
    const endpoints = toPeerEndpoints(content, facts)
    const known = this.#since.get(record)
    if (known !== undefined) {
      return endpoints.map((e, i) => ({ ...e, sinceSeconds: known[i] ?? sinceSeconds }))
    }
    if (before === undefined) return endpoints
    const earlier = this.endpointsOf(before, unpackRecord(before.packed), undefined)
    const nowSeconds = Math.floor(this.#clock.now() / 1000)
    const timed = carrySince(earlier, endpoints, nowSeconds)
    this.#since.set(
      record,
      timed.map((e) => e.sinceSeconds),
    )
    return timed
  }
}
