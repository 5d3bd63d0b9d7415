import { LineBudget } from '../../base/telemetry/line-budget.ts'
import { Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import { printType } from '../../dns/iana/types.ts'
import { Protocol, type Query } from '../../dns/message/query.ts'
import { Section } from '../../dns/message/section.ts'
import { labelOffsets, printName } from '../../dns/name/name.ts'
import type { CounterSlots } from '../../plugin/counter-slots.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import { type Handler, Link, PASS, Trait } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { ZoneSet } from '../../zone/lookup/zone-set.ts'
import { ErrorReport, isMark } from './report-name.ts'

/** Codes below this have a counter of their own; the one after them counts all others. */
export const CODES_COUNTED = 32
/** Lines per thread and period. */
const LINES_MAX = 10
const PERIOD_MS = 60_000
/** A resolver repeats no report while it has the answer. */
const TTL_SECONDS = 86_400
const TEXT = Buffer.from('\x0freport received', 'latin1')

/** Names the agent that wants reports of errors in every reply with EDNS (RFC 9567 section 6.2). */
export class NamesAgent extends Link {
  readonly name = 'error-report'
  readonly #agent: Uint8Array
  readonly #agents: ZoneSet

  /** `agent`: lower-case wire form. */
  constructor(next: Handler, agent: Uint8Array) {
    super(next, Trait.Every, 0)
    this.#agent = agent
    this.#agents = new ZoneSet([agent])
  }

  /** A report that fails must not lead to another one. @hot */
  override before({ query, response }: Transaction): number {
    if (query.hasEdns && this.#agents.match(query) === -1) response.reportAgent = this.#agent
    return PASS
  }
}

/**
 * The agent: answers and counts reports. Over UDP it asks for TCP first, because a report whose
 * sender is forged is worth nothing (RFC 9567 section 9).
 */
export class Agent extends Link {
  readonly name = 'error-report'
  readonly slots: CounterSlots
  readonly #zones: ZoneSet
  /** Of each zone. */
  readonly #labels: readonly number[]
  readonly #report = new ErrorReport()
  readonly #lines = new LineBudget(LINES_MAX, PERIOD_MS)
  readonly #clock: SetupContext['clock']
  readonly #log: SetupContext['log']

  /** `zones`: of the agents, lower-case wire form. */
  constructor(next: Handler, zones: readonly Uint8Array[], c: SetupContext, slots: CounterSlots) {
    super(next, Trait.Every, 0)
    this.#zones = new ZoneSet(zones)
    this.#labels = zones.map((zone) => labelOffsets(zone).length)
    this.#clock = c.clock
    this.#log = c.log
    this.slots = slots
    this.slots.length = CODES_COUNTED + 1
  }

  override before(tx: Transaction): number {
    const { query, response } = tx
    if (query.qclass !== RRClass.IN) return PASS
    const zone = this.#zones.match(query)
    if (zone === -1) return PASS
    const agentLabel = query.labelCount - this.#labels[zone]!
    if (agentLabel === 0 || !isMark(query, agentLabel - 1)) return PASS
    response.answeredBy = 'error-report'
    response.authoritative = true
    response.rcode = Rcode.NOERROR
    // Resolvers with QNAME minimisation ask for the names above first: these exist, without data.
    if (query.qtype !== RRType.TXT || !this.#report.read(query, agentLabel)) return Rcode.NOERROR
    if (query.protocol === Protocol.Udp) {
      response.truncated = true
      return Rcode.NOERROR
    }
    this.#note(tx)
    const { qname } = query
    const { length } = TEXT
    response.add(Section.Answer, qname, 0, RRType.TXT, RRClass.IN, TTL_SECONDS, TEXT, 0, length)
    return Rcode.NOERROR
  }

  #note(tx: Transaction): void {
    const { code, type } = this.#report
    this.slots.of(tx)[Math.min(code, CODES_COUNTED)]! += 1
    if (!this.#lines.take(this.#clock.monotonic())) return
    const name = printFailed(tx.query, this.#report)
    const text = `a resolver reports error ${code} for ${name} ${printType(type)}`
    this.#log.warning(text, 'error-reported', { name, type: printType(type), code })
  }
}

function printFailed({ qname, labelOffset }: Query, { nameLabel, nameEnd }: ErrorReport): string {
  const labels = qname.subarray(labelOffset[nameLabel]!, labelOffset[nameEnd]!)
  return printName(Buffer.concat([labels, Buffer.alloc(1)]))
}
