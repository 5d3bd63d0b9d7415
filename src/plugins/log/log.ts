import type { Clock } from '../../base/clock.ts'
import { Rcode } from '../../dns/iana/index.ts'
import * as plain from '../../dns/message/simple-query.ts'
import type { FastPathObserver, FastPathRole } from '../../plugin/fast-path.ts'
import type { Handler } from '../../plugin/handler.ts'
import { ResponseKind, responseKind } from '../../plugin/status.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import type { RecordWriter } from '../../telemetry/records.ts'
import type { HashedName } from '../../zone/image/hashed-name.ts'
import type { ZoneSet } from '../../zone/lookup/zone-set.ts'
import type { LineFormat } from './format.ts'
import * as memory from './memory.ts'
import type { RecordPrinter } from './printer.ts'
import { composeRecord, composeSimpleRecord, RECORD_WORDS_MAX } from './record.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { simpleQuery } = plain
const { recordWords } = memory

export const CLASSES = ['all', 'success', 'denial', 'error'] as const
export type LogClass = (typeof CLASSES)[number]

/** The queries to log, and their format. */
export interface LogRule {
  /** Names at or below one of these. */
  readonly names: ZoneSet
  readonly format: LineFormat
  /** Undefined = all. */
  readonly classes: ReadonlySet<LogClass> | undefined
}

/** The destination of lines. */
export interface LogOut {
  readonly clock: Clock
  /** Prints lines that are not sent as records. */
  readonly printer: RecordPrinter
  /** Sends records to the thread that prints for this one; undefined = no thread does. */
  readonly records: RecordWriter | undefined
}

/** Writes a line per query. The first rule whose names match decides, whatever its classes. */
export class Log implements Handler {
  readonly name = 'log'
  readonly plain: FastPathRole
  readonly #next: Handler
  readonly #rules: readonly LogRule[]
  readonly #out: LogOut

  constructor(next: Handler, rules: readonly LogRule[], out: LogOut) {
    this.#next = next
    this.#rules = rules
    this.#out = out
    const observer = rules.some(logsAnswers) ? new FastPathLog(rules, out) : undefined
    this.plain = { kind: 'observe', observer: () => observer, next }
  }

  serve(tx: Transaction): number | Promise<number> {
    const rule = ruleOf(this.#rules, tx.query)
    const status = this.#next.serve(tx)
    if (rule === -1) return status
    if (typeof status === 'number') return this.#finish(tx, status, rule)
    return status.then((late) => this.#finish(tx, late, rule))
  }

  /** @hot */
  #finish(tx: Transaction, status: number, rule: number): number {
    if (tx.server.isHandingOver) return status
    const { classes, format } = this.#rules[rule]!
    if (classes !== undefined && !classes.has(classOf(tx, status))) return status
    const { records, printer, clock } = this.#out
    if (records === undefined || format.hasMetadata) {
      composeRecord(recordWords, 0, tx, status, rule, format.asked, clock)
      printer.print(tx)
      return status
    }
    const at = records.begin(RECORD_WORDS_MAX)
    if (at === -1) return status
    records.end(composeRecord(records.words, at, tx, status, rule, format.asked, clock))
    return status
  }
}

/** Logs plain queries as `Log` does. */
class FastPathLog implements FastPathObserver {
  readonly readsAll: boolean
  readonly #rules: readonly LogRule[]
  readonly #out: LogOut
  /** Whether the first rule matches every name. */
  readonly #isOne: boolean
  /** By rule: whether it logs answers. */
  readonly #logs: readonly boolean[]

  constructor(rules: readonly LogRule[], out: LogOut) {
    this.readsAll = rules.some((rule) => rule.format.hasMetadata && logsAnswers(rule))
    this.#rules = rules
    this.#out = out
    this.#isOne = rules[0]!.names.deepest === 0
    this.#logs = rules.map(logsAnswers)
  }

  /** @hot */
  observe(tx: Transaction): void {
    const rule = this.#isOne ? 0 : ruleOf(this.#rules, simpleQuery)
    if (rule === -1 || !this.#logs[rule]!) return
    const { hasMetadata, asked } = this.#rules[rule]!.format
    const { records, printer, clock } = this.#out
    if (records === undefined || hasMetadata) {
      composeSimpleRecord(recordWords, 0, tx, rule, asked, clock)
      printer.print(tx)
      return
    }
    const at = records.begin(RECORD_WORDS_MAX)
    if (at === -1) return
    records.end(composeSimpleRecord(records.words, at, tx, rule, asked, clock))
  }
}

function logsAnswers({ classes }: LogRule): boolean {
  return classes === undefined || classes.has('success')
}

/** The first rule for the name; -1 = none. @hot */
function ruleOf(rules: readonly LogRule[], name: HashedName): number {
  for (let i = 0; i < rules.length; i++) if (rules[i]!.names.match(name) !== -1) return i
  return -1
}

/** The class of a reply: also the metadata `log/class`. */
export function classOf(tx: Transaction, status: number): LogClass {
  switch (responseKind(tx, status)) {
    case ResponseKind.Answer:
    case ResponseKind.Delegation:
      return 'success'
    case ResponseKind.NoData:
    case ResponseKind.NameError:
      return 'denial'
    default:
      return 'error'
  }
}

/** The type of a reply in CoreDNS's terms: the metadata `log/type`. */
export function typeOf(tx: Transaction, status: number): string {
  switch (responseKind(tx, status)) {
    case ResponseKind.Answer:
      return 'NOERROR'
    case ResponseKind.Delegation:
      return 'DELEGATION'
    case ResponseKind.NoData:
      return 'NODATA'
    case ResponseKind.NameError:
      return 'NXDOMAIN'
    default:
      return status === Rcode.SERVFAIL || status === Rcode.NOTIMP ? 'SERVERERROR' : 'OTHERERROR'
  }
}
