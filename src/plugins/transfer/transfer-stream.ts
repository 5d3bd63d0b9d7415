import type { Clock } from '../../base/clock.ts'
import { compose } from '../../dns/message/compose.ts'
import { MESSAGE_OCTETS_MAX } from '../../dns/message/header.ts'
import { HEADER_OCTETS } from '../../dns/message/parse-query.ts'
import type { ReplyStream } from '../../dns/message/reply-stream.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import type { TransferContent } from './transfer-content.ts'
import { TransferMessage } from './transfer-message.ts'

/** The header's count of records in the answer section (RFC 1035 section 4.1.1). */
const ANSWER_COUNT_AT = 6
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
  readonly #content: TransferContent
  readonly #message: TransferMessage
  readonly #clock: Clock
  readonly #onEnd: (counts: TransferCounts) => void
  readonly #deadlineMs: number
  #hasMore = true
  #isWhole = false
  #fault = ''
  #recordCount = 0
  #messageCount = 0
  #octetCount = 0

  constructor(
    tx: Transaction,
    content: TransferContent,
    clock: Clock,
    onEnd: (counts: TransferCounts) => void,
  ) {
    this.#tx = tx
    this.#content = content
    this.#message = new TransferMessage(tx.query.qname.slice(0, tx.query.qnameOctets))
    this.#clock = clock
    this.#onEnd = onEnd
    this.takenMs = clock.monotonic()
    this.#deadlineMs = this.takenMs + TRANSFER_MS_MAX
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
    if (!this.#hasMore) {
      this.#isWhole = true
      return 0
    }
    if (this.isBroken) return 0
    this.takenMs = this.#clock.monotonic()
    if (this.takenMs > this.#deadlineMs) return this.abandon()
    const { signer } = this.#tx.response
    let octets = this.#fill(out, MESSAGE_OCTETS_MAX - (signer === null ? 0 : signer.octets))
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

  /** Writes a message of at most `limit` octets, and returns its length. */
  #fill(out: Uint8Array, limit: number): number {
    const { query, response } = this.#tx
    const message = this.#message
    // Without records: header, question, OPT.
    const bareOctets = compose(query, response, out, limit)
    const start = HEADER_OCTETS + query.questionOctets
    const opt = out.slice(start, bareOctets)
    message.begin(out, start, limit - opt.length)
    this.#hasMore = this.#content.write(message)
    if (message.count === 0) throw new Error('a record is larger than a message')
    this.#recordCount += message.count
    out[ANSWER_COUNT_AT] = message.count >> 8
    out[ANSWER_COUNT_AT + 1] = message.count & 0xff
    out.set(opt, message.at)
    return message.at + opt.length
  }
}
