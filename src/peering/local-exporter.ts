import type { Clock } from '../base/clock.ts'
import type { RecordHealth, RecordState } from '../health/address-health.ts'
import { NO_DRAINS, type RecordDrains } from '../health/drain/drain.ts'
import { type RecordContent, unpackRecord } from '../records/pack.ts'
import type { StoredRecord } from '../records/record-source.ts'
import type { PeerEndpoint } from './peer-endpoint.ts'
import { composeObservation } from './quorum/observation-codec.ts'
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
  /**
   * Times of the endpoints, in their order; only for records that changed, or whose health or
   * drains did.
   */
  readonly #since = new WeakMap<
    StoredRecord,
    WeakMap<RecordHealth, WeakMap<RecordDrains, readonly number[]>>
  >()

  constructor(site: string, clock: Pick<Clock, 'now'>) {
    this.#site = site
    this.#clock = clock
  }

  /** Returns rdata for the TXT records of a record's host, as an `ExportV2` does. */
  composeRdata(
    state: RecordState,
    content: RecordContent,
    before: RecordState | undefined,
  ): Uint8Array[] {
    const exported = this.endpointsOf(state, content, before)
    return exported.map(composePeerEndpoint).filter((rdata) => rdata !== undefined)
  }

  /** Returns rdata for the TXT records with what this site observed of peers' addresses for the host. */
  composeObservations({ observed = [] }: RecordHealth): Uint8Array[] {
    return observed
      .map((one) => composeObservation({ ...one, site: this.#site }))
      .filter((rdata) => rdata !== undefined)
  }

  /** Returns the endpoints of a record as they are exported. */
  endpointsOf(
    { record, health, drains = NO_DRAINS }: RecordState,
    content: RecordContent,
    before: RecordState | undefined,
  ): PeerEndpoint[] {
    const { createdSeconds: sinceSeconds } = content
    const facts = {
      site: this.#site,
      key: record.key,
      down: health.down,
      up: health.up,
      probedAt: health.probedAt,
      drains,
      sinceSeconds,
    }
    const endpoints = toPeerEndpoints(content, facts)
    const known = this.#since.get(record)?.get(health)?.get(drains)
    if (known !== undefined) {
      return endpoints.map((e, i) => ({ ...e, sinceSeconds: known[i] ?? sinceSeconds }))
    }
    if (before === undefined) return endpoints
    const earlier = this.endpointsOf(before, unpackRecord(before.record.packed), undefined)
    const nowSeconds = Math.floor(this.#clock.now() / 1000)
    const timed = carrySince(earlier, endpoints, nowSeconds)
    const byHealth = this.#since.get(record) ?? new WeakMap()
    const byDrains = byHealth.get(health) ?? new WeakMap()
    this.#since.set(record, byHealth.set(health, byDrains))
    const times = timed.map((e) => e.sinceSeconds)
    byDrains.set(drains, times)
    return timed
  }
}
