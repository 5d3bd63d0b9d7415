import type { Clock } from '../base/clock.ts'
import { type RecordContent, unpackRecord } from '../dnsrecord/pack.ts'
import type { StoredRecord } from '../sources/source.ts'
import type { PeerEndpoint } from './peer-endpoint.ts'
import { carrySince, toPeerEndpoints } from './to-peer-endpoint.ts'
import { composePeerEndpoint } from './v2-codec.ts'

/**
 * Exports the records of a source as whole endpoints, with the time of each endpoint's last change.
 * That time is the record's creation until this process sees a change. So a restart needs no data
 * on disk. All zones of one source share one exporter, also over reloads.
 */
export class LocalExporter {
  readonly #site: string
  readonly #clock: Pick<Clock, 'now'>
  /** Times of the endpoints, in their order; only for records that changed. */
  readonly #since = new WeakMap<StoredRecord, readonly number[]>()

  constructor(site: string, clock: Pick<Clock, 'now'>) {
    this.#site = site
    this.#clock = clock
  }

  /** Returns rdata for the TXT records of a record's host, as an `ExportV2` does. */
  composeRdata(
    record: StoredRecord,
    content: RecordContent,
    before: StoredRecord | undefined,
  ): Uint8Array[] {
    const exported = this.endpointsOf(record, content, before)
    return exported.map(composePeerEndpoint).filter((rdata) => rdata !== undefined)
  }

  /** Returns the endpoints of a record as they are exported. */
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
