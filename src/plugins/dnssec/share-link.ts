import { InputError } from '../../base/errors.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import { Opcode, Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import { Protocol } from '../../dns/message/query.ts'
import { Section } from '../../dns/message/section.ts'
import { isSubdomain, nameKey, printName } from '../../dns/name/name.ts'
import { printAddress } from '../../dns/text/address.ts'
import type { TsigKey } from '../../dns/tsig/key.ts'
import { type Handler, Trait } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { type KeyQuestion, scanKeyQuestion } from '../../signing/shared/key-question.ts'
import type { KeyShare } from '../../signing/shared/key-share.ts'
import type { KeySharing } from './options.ts'

interface ShareParts {
  /** Only keys of these zones, and of those below them, are sent. */
  readonly zones: readonly Uint8Array[]
  readonly sharing: KeySharing
  /** Undefined until the server starts. */
  readonly share: () => KeyShare | undefined
  readonly log: Logger
}

/**
 * Sends the keys of zones, encrypted, to servers that signed their query with a key of `share`. It answers only over
 * TCP.
 */
export class ShareLink implements Handler {
  readonly name = 'dnssec'
  readonly only: Handler['only']
  readonly #next: Handler
  readonly #parts: ShareParts
  readonly #keyNames: ReadonlySet<string>

  constructor(next: Handler, parts: ShareParts) {
    this.#next = next
    this.#parts = parts
    this.#keyNames = new Set(parts.sharing.keyNames.map(nameKey))
    const selects = (tx: Transaction): boolean => questionOf(tx) !== undefined
    this.only = { queries: Trait.Every, next, selects }
  }

  serve(tx: Transaction): number | Promise<number> {
    const question = questionOf(tx)
    if (question === undefined) return this.#next.serve(tx)
    const { response, tsigKey } = tx
    response.answeredBy = this.name
    if (tsigKey === undefined || !this.#keyNames.has(nameKey(tsigKey.name))) return Rcode.REFUSED
    if (!this.#parts.zones.some((zone) => isSubdomain(question.zone, zone))) return Rcode.REFUSED
    return this.#answer(tx, question, tsigKey)
  }

  async #answer(tx: Transaction, question: KeyQuestion, key: TsigKey): Promise<number> {
    const { query, response } = tx
    const { share, log } = this.#parts
    try {
      const reply = await share()?.answer(question, key.secret)
      if (reply === undefined) return Rcode.SERVFAIL
      const { rdata, hasKeys } = reply
      response.authoritative = true
      // No cache keeps it.
      response.isSteered = true
      const { qname } = query
      response.add(Section.Answer, qname, 0, RRType.TXT, RRClass.IN, 0, rdata, 0, rdata.length)
      const peer = printAddress(query.peerAddress, query.peerFamily === 1 ? 1 : 2)
      const zone = printName(question.zone)
      if (hasKeys) log.info(`keys of ${zone} sent to ${peer}, key ${key.nameText}`, 'keys-sent')
      return Rcode.NOERROR
    } catch (error) {
      if (!(error instanceof InputError)) throw error
      response.error = error.print()
      return Rcode.SERVFAIL
    }
  }
}

function questionOf({ query }: Transaction): KeyQuestion | undefined {
  if (query.qtype !== RRType.TXT || query.protocol === Protocol.Udp) return undefined
  if (query.opcode !== Opcode.QUERY || query.qclass !== RRClass.IN) return undefined
  return scanKeyQuestion(query.qname.subarray(0, query.qnameOctets))
}
