import { Rcode, RRClass, RRType } from '../dns/iana/index.ts'
import type { Query } from '../dns/message/query.ts'
import type { Response } from '../dns/message/response.ts'
import { Section } from '../dns/message/section.ts'
import type { HashedName } from '../dns/name/hashed-name.ts'
import type { ZoneDirectory } from '../dns/name/zone-directory.ts'
import type { Fallthrough } from '../plugin/arguments/fallthrough.ts'
import type { Handler } from '../plugin/handler.ts'
import type { Transaction } from '../plugin/transaction.ts'
import type { ZoneAnswerer } from '../zone/lookup/answer.ts'
import type { AnswerSource } from '../zone/lookup/answer-source.ts'
import { ZoneSet } from '../zone/lookup/zone-set.ts'
import { answerFromImage, withdrawAnswer } from './authority.ts'

/** The part of a zone that answering needs. */
export interface ServedZone {
  /** Apex, lower-case wire form. */
  readonly zone: Uint8Array
  /** Undefined = none of its versions was valid yet: SERVFAIL. */
  readonly answerer: ZoneAnswerer | undefined
  /** True: only another process has the zone. */
  readonly isElsewhere?: boolean | undefined
}

/** The zones of one directive; `change` puts all its changes in force at once. */
export class FileZoneTable {
  #zones: readonly ServedZone[] = []
  #set = new ZoneSet([])

  get zones(): readonly ServedZone[] {
    return this.#zones
  }

  /** See `ZoneSet`. */
  deepestAround(name: HashedName): number {
    return this.#set.deepestAround(name)
  }

  get directory(): ZoneDirectory {
    return this.#set
  }

  /**
   * Adds zones, replaces those with the same apex, and removes the zones with the apexes `gone`. If the apexes stay the
   * same, this takes little time, however many zones there are.
   */
  change(put: readonly ServedZone[], gone: readonly Uint8Array[] = []): void {
    const zones = [...this.#zones]
    for (const zone of put) {
      const index = this.#set.indexOf(zone.zone)
      zones[index === -1 ? zones.length : index] = zone
    }
    const removed = new Set(gone.map((zone) => this.#set.indexOf(zone)))
    if (removed.size === 0 && zones.length === this.#zones.length) this.#zones = zones
    else this.#replace(zones.filter((_, index) => !removed.has(index)))
  }

  /** Returns the zone that the name is in, or undefined. */
  find(name: HashedName): ServedZone | undefined {
    const index = this.#set.match(name)
    return index === -1 ? undefined : this.#zones[index]
  }

  /** Returns the zone that answers the query, or undefined. */
  match(query: Query): ServedZone | undefined {
    let index = this.#set.match(query)
    if (index === -1) return undefined
    // The DS of a zone is data of its parent (RFC 4035 section 3.1.4.1), if the parent is here too.
    if (query.qtype === RRType.DS && this.#zones[index]!.zone.length === query.qnameOctets) {
      const parent = this.#set.match(query, 1)
      if (parent !== -1) index = parent
    }
    return this.#zones[index]
  }

  #replace(zones: readonly ServedZone[]): void {
    this.#zones = zones
    this.#set = new ZoneSet(zones.map(({ zone }) => zone))
  }
}

interface FileZonesOptions {
  /** The directive's name. */
  readonly name: string
  readonly table: FileZoneTable
  readonly fallthrough: Fallthrough
  /**
   * Names outside of these zones go to the next plugin, whatever zones exist; default: any name may
   * be inside.
   */
  readonly origins?: ZoneSet
}

/** Answers from zones of master files, for `file` and `auto`. */
export class FileZones implements Handler, AnswerSource {
  readonly source: AnswerSource = this
  readonly name: string
  readonly #next: Handler
  readonly #table: FileZoneTable
  readonly #fallthrough: Fallthrough
  readonly #origins: ZoneSet | undefined

  constructor(next: Handler, options: FileZonesOptions) {
    this.name = options.name
    this.#next = next
    this.#table = options.table
    this.#fallthrough = options.fallthrough
    this.#origins = options.origins
  }

  get denies(): boolean {
    return this.#fallthrough.isNever
  }

  get holder(): object {
    return this.#table.zones
  }

  deepestAround(name: HashedName): number {
    return Math.max(this.#table.deepestAround(name), this.#origins?.deepestAround(name) ?? 0)
  }

  find(name: HashedName): ZoneAnswerer | undefined {
    if (this.#origins?.match(name) === -1) return undefined
    return this.#table.find(name)?.answerer
  }

  serve(tx: Transaction): number | Promise<number> {
    const { qclass, qtype } = tx.query
    if (qclass !== RRClass.IN || this.#origins?.match(tx.query) === -1) return this.#passOn(tx)
    const zone = this.#table.match(tx.query)
    if (zone === undefined) return this.#passOn(tx)
    if (qtype === RRType.AXFR || qtype === RRType.IXFR) return Rcode.REFUSED
    const answerer = zone.answerer
    if (answerer === undefined) {
      if (zone.isElsewhere === true) {
        tx.response.error = 'only a running server has the zone'
        return tx.server.handOver(this.name)
      }
      tx.response.error = 'the zone is not loaded'
      return Rcode.SERVFAIL
    }
    const status = answerFromImage(tx, answerer, this.#table.directory)
    if (status === Rcode.NXDOMAIN && this.#fallthrough.through(tx.query) && isBare(tx.response)) {
      withdrawAnswer(tx.response)
      return this.#next.serve(tx)
    }
    tx.response.answeredBy = this.name
    return status
  }

  /**
   * Refuses, as an authoritative server, a name without a zone here, unless another plugin may
   * serve it.
   */
  #passOn(tx: Transaction): number | Promise<number> {
    return this.#next.name === '' ? Rcode.REFUSED : this.#next.serve(tx)
  }
}

/** True if the answer has no alias: the qname itself does not exist. */
function isBare(response: Response): boolean {
  return response.count === 0 || response.section[0] !== Section.Answer
}
