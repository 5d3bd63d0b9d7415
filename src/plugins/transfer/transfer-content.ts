import type { ZoneDifference } from '../../xfr/journal/diff.ts'
import { packedRecords } from '../../xfr/journal/packed-records.ts'
import type { RecordView } from '../../xfr/journal/record-view.ts'
import type { VersionCursor } from '../../xfr/journal/version-cursor.ts'
import type { TransferMessage } from './transfer-message.ts'

/** The records of a transfer, in their order. */
export interface TransferContent {
  /** Adds the next records until the message is full. Returns false after the last record. */
  write(message: TransferMessage): boolean
}

/** A whole zone (RFC 5936 section 2.2): its SOA, all other records, its SOA. */
export class WholeZone implements TransferContent {
  readonly #soa: RecordView
  readonly #rest: VersionCursor
  #hasBegun = false

  constructor(soa: RecordView, rest: VersionCursor) {
    this.#soa = soa
    this.#rest = rest
  }

  write(message: TransferMessage): boolean {
    if (!this.#hasBegun) {
      if (!message.addRecord(this.#soa)) return true
      this.#hasBegun = true
    }
    return this.#rest.write(message) || !message.addRecord(this.#soa)
  }
}

/** Records that are made one by one. Each is valid until the next one is made. */
export class RecordList implements TransferContent {
  readonly #records: Iterator<RecordView, void>
  #next: RecordView | undefined

  constructor(records: Iterator<RecordView, void>) {
    this.#records = records
    this.#pull()
  }

  write(message: TransferMessage): boolean {
    while (this.#next !== undefined) {
      if (!message.addRecord(this.#next)) return true
      this.#pull()
    }
    return false
  }

  #pull(): void {
    const next = this.#records.next()
    this.#next = next.done === true ? undefined : next.value
  }
}

/**
 * Returns the differences to `soa` (RFC 1995 section 4). Without steps, it has only the SOA: the client
 * is current.
 */
export function differences(soa: RecordView, steps: readonly ZoneDifference[]): TransferContent {
  return new RecordList(ixfrRecords(soa, steps))
}

function* ixfrRecords(
  soa: RecordView,
  steps: readonly ZoneDifference[],
): Generator<RecordView, void> {
  yield soa
  for (const { removed, added } of steps) {
    yield* packedRecords(removed)
    yield* packedRecords(added)
  }
  if (steps.length > 0) yield soa
}
