import { appendAnswer } from '../../authority/append-answer.ts'
import type { LinearRegExp } from '../../base/re2/linear-regexp.ts'
import { printClass, printType, Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import { Section } from '../../dns/message/section.ts'
import { lowerName, printName } from '../../dns/name/name.ts'
import { type AddressFamily, printAddress } from '../../dns/text/address.ts'
import type { Fallthrough } from '../../plugin/arguments/fallthrough.ts'
import type { CounterSlots } from '../../plugin/counter-slots.ts'
import type { Handler } from '../../plugin/handler.ts'
import { isUnwritten } from '../../plugin/status.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { countLabels, type ZoneSet } from '../../zone/lookup/zone-set.ts'
import { type Conditions, Verdict } from './conditions.ts'
import { type GoTemplate, RenderFault, type TemplateData } from './go-template.ts'
import { scanRecord, type TextRecord } from './record-text.ts'

/** Counters of a template for one of its zones; two more for each of its records. */
export const TemplateCount = { Matches: 0, Records: 1 } as const
/** Counters of a record: texts that could not be made, and texts that are not a record. */
export const RecordCount = { TextFailures: 0, RecordFailures: 1 } as const
export const RECORD_COUNTERS = 2

/** A record of a reply. */
export interface RecordTemplate {
  readonly section: Section
  readonly source: string
  readonly text: GoTemplate
  /** Set if the text is the same for all queries. */
  readonly record: TextRecord | undefined
}

/** One `template` of the Corefile. */
export interface ReplyTemplate {
  readonly zones: ZoneSet
  readonly zoneTexts: readonly string[]
  /** ANY = every class, every type. */
  readonly qclass: number
  readonly qtype: number
  /** None = every name matches. */
  readonly patterns: readonly LinearRegExp[]
  readonly conditions: Conditions
  /** In the order of the sections of a message. */
  readonly records: readonly RecordTemplate[]
  readonly rcode: number
  /** Extended error; -1 = none. */
  readonly edeCode: number
  readonly edeText: Uint8Array
  readonly fallthrough: Fallthrough
  /** Index of the counters of its first zone. */
  readonly counterStart: number
}

/** Returns the counters of a template for one zone. */
export function countersOf({ records }: Pick<ReplyTemplate, 'records'>): number {
  return TemplateCount.Records + records.length * RECORD_COUNTERS
}

/** Answers queries with records that are made from texts. The first template that matches answers. */
export class Template implements Handler {
  readonly name = 'template'
  readonly #next: Handler
  readonly #templates: readonly ReplyTemplate[]
  readonly #slots: CounterSlots
  readonly #metadata: (tx: Transaction, label: string) => string

  constructor(
    next: Handler,
    templates: readonly ReplyTemplate[],
    slots: CounterSlots,
    metadata: (tx: Transaction, label: string) => string,
  ) {
    this.#next = next
    this.#templates = templates
    this.#slots = slots
    this.#metadata = metadata
  }

  serve(tx: Transaction): number | Promise<number> {
    const { query } = tx
    let name = ''
    for (const template of this.#templates) {
      const zone = template.zones.match(query)
      if (zone === -1) continue
      if (!fits(template.qclass, query.qclass, RRClass.ANY)) continue
      if (!fits(template.qtype, query.qtype, RRType.ANY)) continue
      if (name === '') name = printName(query.qname)
      const found = match(template.patterns, name)
      const verdict = found === undefined ? Verdict.False : check(tx, template, found)
      if (verdict === Verdict.Failed) return Rcode.SERVFAIL
      if (found !== undefined && verdict === Verdict.True) {
        const counter = template.counterStart + zone * countersOf(template)
        const data = this.#data(tx, template, zone, name, found)
        const status = this.#answer(tx, template, zone, data, counter)
        // Last, because the target of a CNAME may be the concern of another thread.
        this.#count(tx, counter + TemplateCount.Matches)
        return status
      }
      if (!template.fallthrough.through(query)) return Rcode.SERVFAIL
    }
    // The plugins below serve IN, and their answers would have the wrong class.
    if (query.qclass !== RRClass.IN) return Rcode.REFUSED
    return this.#next.serve(tx)
  }

  #data(
    tx: Transaction,
    template: ReplyTemplate,
    zone: number,
    name: string,
    { groups, pattern }: Found,
  ): TemplateData {
    const { qclass, qtype, peerAddress, peerFamily } = tx.query
    return {
      zone: template.zoneTexts[zone]!,
      name,
      class: printClass(qclass === RRClass.ANY ? template.qclass : qclass),
      type: printType(qtype === RRType.ANY ? template.qtype : qtype),
      qclass,
      qtype,
      remote: printAddress(peerAddress, peerFamily as AddressFamily),
      regex: pattern?.source ?? '.*',
      match: groups,
      groupNames: pattern?.groupNames ?? NO_NAMES,
      variables: template.conditions.printed(),
      metadata: (label) => this.#metadata(tx, label),
    }
  }

  #answer(
    tx: Transaction,
    template: ReplyTemplate,
    zone: number,
    data: TemplateData,
    counter: number,
  ): number | Promise<number> {
    const { query, response } = tx
    response.answeredBy = this.name
    response.edeCode = template.edeCode
    response.edeText = template.edeText
    if (template.rcode === Rcode.SERVFAIL) return Rcode.SERVFAIL
    response.authoritative = true
    response.rcode = template.rcode
    // All names of the zone may have such a reply.
    response.imputedLabel = query.labelCount - countLabels(template.zones.zones[zone]!)
    return this.#addRecords(tx, template, data, counter, 0)
  }

  /** Adds the records from number `first` on. */
  #addRecords(
    tx: Transaction,
    template: ReplyTemplate,
    data: TemplateData,
    counter: number,
    first: number,
  ): number | Promise<number> {
    for (let i = first; i < template.records.length; i++) {
      const source = template.records[i]!
      const failures = counter + TemplateCount.Records + i * RECORD_COUNTERS
      const record = source.record ?? this.#makeRecord(tx, source, data, failures)
      if (record === undefined) return Rcode.SERVFAIL
      const { owner, type, rrclass, ttlSeconds, rdata } = record
      tx.response.add(source.section, owner, 0, type, rrclass, ttlSeconds, rdata, 0, rdata.length)
      if (source.section !== Section.Answer || type !== RRType.CNAME) continue
      const asked = lookUpTarget(tx, rdata)
      if (asked instanceof Promise) {
        return asked.then((target) => {
          addTarget(tx, target)
          return this.#addRecords(tx, template, data, counter, i + 1)
        })
      }
      addTarget(tx, asked)
    }
    const { rcode } = template
    // The records are sent with this rcode, so it is not a bare error.
    return isUnwritten(rcode) ? Rcode.NOERROR : rcode
  }

  #makeRecord(
    tx: Transaction,
    { text, source }: RecordTemplate,
    data: TemplateData,
    failures: number,
  ): TextRecord | undefined {
    const rendered = text.render(data)
    if (rendered instanceof RenderFault) {
      this.#count(tx, failures + RecordCount.TextFailures)
      tx.response.error = `template ${JSON.stringify(source)}: ${rendered.message}`
      return undefined
    }
    const record = scanRecord(rendered)
    if (typeof record !== 'string') return record
    this.#count(tx, failures + RecordCount.RecordFailures)
    tx.response.error = `template ${JSON.stringify(source)}: not a record: ${record}`
    return undefined
  }

  #count(tx: Transaction, counter: number): void {
    if (!tx.server.isHandingOver) this.#slots.of(tx)[counter]! += 1
  }
}

/** Groups of a template without a regular expression: the whole name. */
const NO_NAMES: readonly string[] = ['']

function check(
  tx: Transaction,
  { conditions }: ReplyTemplate,
  { groups, pattern }: Found,
): Verdict {
  return conditions.check(tx, groups, pattern?.groupNames ?? NO_NAMES)
}

/** True if a template for `own` concerns a query for `asked`. */
function fits(own: number, asked: number, any: number): boolean {
  return own === any || asked === any || own === asked
}

interface Found {
  readonly groups: readonly string[]
  /** Undefined: the template has no regular expression. */
  readonly pattern: LinearRegExp | undefined
}

function match(patterns: readonly LinearRegExp[], name: string): Found | undefined {
  if (patterns.length === 0) return { groups: [name], pattern: undefined }
  for (const pattern of patterns) {
    const groups = pattern.exec(name)
    if (groups !== undefined) return { groups, pattern }
  }
  return undefined
}

/** Asks for the addresses of a CNAME's target. */
function lookUpTarget(
  tx: Transaction,
  target: Uint8Array,
): Transaction | undefined | Promise<Transaction | undefined> {
  const { qclass, qtype } = tx.query
  if (qclass !== RRClass.IN || (qtype !== RRType.A && qtype !== RRType.AAAA)) return undefined
  return tx.server.lookupInternally(tx, lowerName(target), qtype)
}

function addTarget(tx: Transaction, target: Transaction | undefined): void {
  if (target === undefined) return
  appendAnswer(tx, target.response)
  tx.server.release(target)
}
