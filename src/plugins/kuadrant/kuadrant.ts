import { answerFromImage, NOT_OURS, withdrawAnswer } from '../../authority/authority.ts'
import { EdeCode } from '../../dns/iana/options.ts'
import { Rcode } from '../../dns/iana/rcodes.ts'
import { RRType } from '../../dns/iana/types.ts'
import type { HashedName } from '../../dns/name/hashed-name.ts'
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
  readonly #nested: ZoneSet

  /**
   * `signed`: the zones that are served only if they are signed. `nested`: those of them that are below another zone,
   * which must not answer for them.
   */
  constructor(
    next: Handler,
    source: KuadrantSource,
    fallthrough: Fallthrough,
    signed: ZoneSet = NONE,
    nested: ZoneSet = NONE,
  ) {
    this.#next = next
    this.#zones = source
    this.#fallthrough = fallthrough
    this.#signed = signed
    this.#nested = nested
  }

  get denies(): boolean {
    return this.#fallthrough.isNever
  }

  get holder(): ZoneAnswerer | undefined {
    return this.#zones.answerer
  }

  /** The zone image alone distinguishes the zones, except for those that may be missing below another one. */
  deepestAround(name: HashedName): number {
    return this.#nested.deepest === 0 ? 0 : this.#nested.deepestAround(name)
  }

  find(name: HashedName): ZoneAnswerer | undefined {
    const { answerer } = this.#zones
    return answerer === undefined || this.#isMissing(name, 0, answerer) ? undefined : answerer
  }

  /** @hot */
  serve(tx: Transaction): number | Promise<number> {
    const { qtype } = tx.query
    const { answerer } = this.#zones
    if (answerer === undefined) return notLoaded(tx)
    if (qtype === RRType.AXFR || qtype === RRType.IXFR) return this.#refuseTransfer(tx, answerer)
    const fromLabel = qtype === RRType.DS ? 1 : 0
    if (this.#isMissing(tx.query, fromLabel, answerer)) return notSigned(tx)
    const status = answerFromImage(tx, answerer, this.#nested)
    if (status === NOT_OURS) return this.#serveOther(tx)
    if (status === Rcode.NXDOMAIN && this.#isMissing(tx.query, 0, answerer)) {
      // For a DS: the zone above does not delegate, but it must not deny the apex either (RFC 8020).
      withdrawAnswer(tx.response)
      return notSigned(tx)
    }
    if (status === Rcode.NXDOMAIN && this.#fallthrough.through(tx.query)) {
      withdrawAnswer(tx.response)
      return this.#next.serve(tx)
    }
    tx.response.answeredBy = this.name
    return status
  }

  /** Answers for a name outside of all zones of the image. */
  #serveOther(tx: Transaction): number | Promise<number> {
    return this.#signed.match(tx.query) === -1 ? this.#next.serve(tx) : notSigned(tx)
  }

  /** True if the zone of a name is not in the image yet, but one above it is. The DS of an apex is data of that one. */
  #isMissing(name: HashedName, fromLabel: number, { reader }: ZoneAnswerer): boolean {
    if (this.#nested.deepest === 0 || name.labelCount < fromLabel) return false
    const octets = this.#nested.apexOctets(name, fromLabel)
    if (octets === 0) return false
    reader.refresh()
    if (reader.matchZone(name, fromLabel) === 0) return false
    return name.qnameOctets - name.labelOffset[reader.zoneLabel]! < octets
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

function notSigned({ response }: Transaction): number {
  response.edeCode = EdeCode.NOT_READY
  response.error = 'the zone is not signed yet'
  return Rcode.SERVFAIL
}

function notLoaded(tx: Transaction): number {
  tx.response.error = 'the zones are not loaded'
  return Rcode.SERVFAIL
}
