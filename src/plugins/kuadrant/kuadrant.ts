import { answerFromImage, NOT_OURS, withdrawAnswer } from '../../authority/authority.ts'
import { Rcode } from '../../dns/iana/rcodes.ts'
import { RRType } from '../../dns/iana/types.ts'
import type { Fallthrough } from '../../plugin/arguments/fallthrough.ts'
import type { Handler } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import type { ZoneAnswerer } from '../../zone/lookup/answer.ts'
import type { AnswerSource } from '../../zone/lookup/answer-source.ts'
import { ZoneSet } from '../../zone/lookup/zone-set.ts'

const NONE = new ZoneSet([])

/** Where the handler finds the zones, once they are loaded. */
interface KuadrantSource {
  readonly answerer: ZoneAnswerer | undefined
}

/** Answers from the zones built from DNSRecords. */
export class KuadrantHandler implements Handler, AnswerSource {
  readonly name = 'kuadrant'
  readonly source: AnswerSource = this
  readonly #next: Handler
  readonly #zones: KuadrantSource
  readonly #fallthrough: Fallthrough
  readonly #signed: ZoneSet

  /** `signed`: the zones that are served only if they are signed. */
  constructor(
    next: Handler,
    source: KuadrantSource,
    fallthrough: Fallthrough,
    signed: ZoneSet = NONE,
  ) {
    this.#next = next
    this.#zones = source
    this.#fallthrough = fallthrough
    this.#signed = signed
  }

  get denies(): boolean {
    return this.#fallthrough.isNever
  }

  get holder(): ZoneAnswerer | undefined {
    return this.#zones.answerer
  }

  /** The zone image alone distinguishes the zones. */
  deepestAround(): number {
    return 0
  }

  find(): ZoneAnswerer | undefined {
    return this.#zones.answerer
  }

  /** @hot */
  serve(tx: Transaction): number | Promise<number> {
    const { qtype } = tx.query
    const { answerer } = this.#zones
    if (answerer === undefined) return notLoaded(tx)
    if (qtype === RRType.AXFR || qtype === RRType.IXFR) return this.#refuseTransfer(tx, answerer)
    const status = answerFromImage(tx, answerer)
    if (status === NOT_OURS) return this.#serveOther(tx)
    if (status === Rcode.NXDOMAIN && this.#fallthrough.through(tx.query)) {
      withdrawAnswer(tx.response)
      return this.#next.serve(tx)
    }
    tx.response.answeredBy = this.name
    return status
  }

  /** Answers for a name outside of all zones of the image. */
  #serveOther(tx: Transaction): number | Promise<number> {
    if (this.#signed.match(tx.query) === -1) return this.#next.serve(tx)
    tx.response.error = 'the zone is not signed yet'
    return Rcode.SERVFAIL
  }

  /**
   * Refuses a transfer that is not served. An empty answer would look like a zone without records.
   */
  #refuseTransfer(tx: Transaction, answerer: ZoneAnswerer): number | Promise<number> {
    const { reader } = answerer
    reader.refresh()
    return reader.matchZone(tx.query, 0) === 0 ? this.#next.serve(tx) : Rcode.REFUSED
  }
}

function notLoaded(tx: Transaction): number {
  tx.response.error = 'the zones are not loaded'
  return Rcode.SERVFAIL
}
