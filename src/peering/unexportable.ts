import type { Clock } from '../base/clock.ts'
import { runInSlices } from '../base/slices.ts'
import { FaultLog } from '../base/telemetry/fault-log.ts'
import { guarding } from '../base/telemetry/guard.ts'
import type { Logger } from '../base/telemetry/log.ts'
import { UNKNOWN_HEALTH } from '../health/address-health.ts'
import { isExportable } from '../records/kdrnt.ts'
import { KDRNT } from '../records/local-zone.ts'
import { hasAlias, unpackPlace, unpackRecord, unpackSettings } from '../records/pack.ts'
import { printHost } from '../records/print-endpoint.ts'
import type { RecordChange, RecordSource, StoredRecord } from '../records/record-source.ts'
import { findUnexportedFailover } from './export-settings.ts'
import { toPeerEndpoints } from './to-peer-endpoint.ts'
import { composePeerEndpoint } from './v2-codec.ts'

/** Sizes of a name and of a packed record that are always exportable, in any notation. */
const HOST_OCTETS_SURE = 240
const PACKED_OCTETS_SURE = 8000
const ALIAS_FAULT =
  'sites that read only the first version of kdrnt do not get its ALIAS endpoints; other sites resolve them themselves'

interface UnexportableRecordsParts {
  readonly source: RecordSource
  /** Selects the records to export. */
  readonly allows: (record: StoredRecord) => boolean
  readonly site: string
  readonly log: Logger
  readonly clock: Clock
}

/**
 * Logs which of our records are not exported, or not with all endpoints. Each record is logged once
 * until it is exportable or removed, and not too many at a time. The log is the only sign: this
 * server itself serves these records completely.
 */
export class UnexportableRecords {
  readonly #parts: UnexportableRecordsParts
  readonly #faults: FaultLog
  readonly #stopListening: () => void
  #isClosed = false

  constructor(parts: UnexportableRecordsParts) {
    const { source, log, clock } = parts
    this.#parts = parts
    this.#faults = new FaultLog(log, clock)
    this.#stopListening = source.subscribe((changes) => this.#take(changes))
    const guarded = guarding(log, 'Searching for records that cannot be exported')
    void guarded(() => runInSlices(this.#checkAll(), clock))
  }

  close(): void {
    this.#isClosed = true
    this.#stopListening()
  }

  *#checkAll(): Generator<void, void> {
    for (const record of this.#parts.source.records()) {
      if (this.#isClosed) return
      this.#check(record)
      yield
    }
  }

  #take(changes: readonly RecordChange[]): void {
    for (const { before, after } of changes) {
      if (after !== undefined) this.#check(after)
      else if (before !== undefined) this.#faults.clear(before.key)
    }
  }

  #check(record: StoredRecord): void {
    const { allows, site } = this.#parts
    const fault = allows(record) ? findUnexportable(record, site) : ''
    if (fault === '') this.#faults.clear(record.key)
    else this.#faults.report(record.key, `${record.key}: ${fault}`)
  }
}

/** Returns what of the record can't be exported; '' = all of it can. */
function findUnexportable({ key, packed }: StoredRecord, site: string): string {
  const { rootHostKey } = unpackPlace(packed)
  if (hasAlias(packed)) return ALIAS_FAULT
  const isShort = rootHostKey.length <= HOST_OCTETS_SURE && packed.length <= PACKED_OCTETS_SURE
  if (isShort && unpackSettings(packed)?.failover === undefined) return ''
  const content = unpackRecord(packed)
  // Records that an operator assembled, or wrote in the form of zone kdrnt, are not exported by us.
  if (content.isAggregate || content.zoneLabel === KDRNT) return ''
  if (!isExportable(content.rootHost)) {
    const host = printHost(content.rootHost)
    return `it is not exported to other sites: ${host} is too long for a name in the zone ${KDRNT}`
  }
  const shared = toPeerEndpoints(content, { site, key, ...UNKNOWN_HEALTH, sinceSeconds: 0 })
  const lost = shared.filter((endpoint) => composePeerEndpoint(endpoint) === undefined).length
  if (lost === 0) return findUnexportedFailover(content)
  return `${lost} of its endpoints are not exported to other sites: they are too long for a record`
}
