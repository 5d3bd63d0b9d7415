import type { Clock } from '../../base/clock.ts'
import { RRClass } from '../../dns/iana/classes.ts'
import { compose } from '../../dns/message/compose.ts'
import { MESSAGE_OCTETS_MAX } from '../../dns/message/header.ts'
import type { ReplyStream } from '../../dns/message/reply-stream.ts'
import { Section } from '../../dns/message/section.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import type { ZoneDifference } from '../../xfr/journal/diff.ts'
import { packedRecords } from '../../xfr/journal/packed-records.ts'
import { type RecordView, recordOctets, type VersionView } from '../../xfr/journal/version-view.ts'

/**
 * Octets of uncompressed records after which a message is sent: a compromise of little memory and
 * good compression.
 */
const MESSAGE_OCTETS = 30_000
/** Maximum duration of a transfer to one client. */
const TRANSFER_MS_MAX = 2 * 60 * 60 * 1000

/** What was sent, for metrics. */
export interface TransferCounts {
  readonly records: number
  readonly messages: number
  readonly octets: number
  /** False if the client disconnected or was too slow, or if an error occurred. */
  readonly isWhole: boolean
  /** The error on our side; '' = none. */
  readonly fault: string
}

/** Composes the messages of one transfer as fast as its client reads them. */
export class TransferStream implements ReplyStream {
  isBroken = false
  /** Monotonic milliseconds: when the client had last read all earlier messages. */
  takenMs: number
  readonly #tx: Transaction
  readonly #records: Iterator<RecordView, void>
  readonly #clock: Clock
  readonly #onEnd: (counts: TransferCounts) => void
  readonly #deadlineMs: number
  /** A record that was read but did not fit into the last message. */
  #held: RecordView | undefined
  #isWhole = false
  #fault = ''
  #recordCount = 0
  #messageCount = 0
  #octetCount = 0

  constructor(
    tx: Transaction,
    records: Iterator<RecordView, void>,
    clock: Clock,
    onEnd: (counts: TransferCounts) => void,
  ) {
    this.#tx = tx
    this.#records = records
    this.#clock = clock
    this.#onEnd = onEnd
    this.takenMs = clock.monotonic()
    this.#deadlineMs = this.takenMs + TRANSFER_MS_MAX
    this.#held = this.#pull()
  }

  next(out: Uint8Array): number {
    // A socket calls this, and an exception there would end the process.
    try {
      return this.#compose(out)
    } catch (error) {
      this.#fault = error instanceof Error ? error.message : String(error)
      return this.abandon()
    }
  }

  #compose(out: Uint8Array): number {
    if (this.#held === undefined) {
      this.#isWhole = true
      return 0
    }
    if (this.isBroken) return 0
    this.takenMs = this.#clock.monotonic()
    if (this.takenMs > this.#deadlineMs) return this.abandon()
    this.#fill()
    const { query, response } = this.#tx
    const { signer } = response
    const limit = MESSAGE_OCTETS_MAX - (signer === null ? 0 : signer.octets)
    let octets = compose(query, response, out, limit)
    if (response.truncated) return this.abandon()
    if (signer !== null) octets = signer.sign(out, octets, Math.floor(this.#clock.now() / 1000))
    this.#messageCount++
    this.#octetCount += octets
    return octets
  }

  /** Closes the connection; sends no further message. */
  abandon(): number {
    this.isBroken = true
    return 0
  }

  close(): void {
    const counts = { records: this.#recordCount, messages: this.#messageCount }
    const end = { isWhole: this.#isWhole, fault: this.#fault }
    this.#onEnd({ ...counts, ...end, octets: this.#octetCount })
  }

  #fill(): void {
    const { response } = this.#tx
    response.count = 0
    let octets = 0
    while (this.#held !== undefined) {
      const record = this.#held
      octets += recordOctets(record)
      if (octets > MESSAGE_OCTETS && response.count > 0) return
      response.add(
        Section.Answer,
        record.owner,
        record.ownerOffset,
        record.type,
        RRClass.IN,
        record.ttlSeconds,
        record.rdata,
        record.rdataOffset,
        record.rdataOctets,
      )
      this.#recordCount++
      this.#held = this.#pull()
    }
  }

  #pull(): RecordView | undefined {
    const next = this.#records.next()
    return next.done === true ? undefined : next.value
  }
}

/** Yields a whole zone (RFC 5936 section 2.2): its SOA, all other records, its SOA. */
export function* axfrRecords(view: VersionView, soa: RecordView): Generator<RecordView, void> {
  yield soa
  yield* view.content()
  yield soa
}

/**
 * Yields the differences to `soa` (RFC 1995 section 4). Without steps, it yields only the SOA: the
 * client is current.
 */
export function* ixfrRecords(
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
