import type { Clock } from '../../base/clock.ts'
import { Rcode } from '../../dns/iana/index.ts'
import type { HashedName } from '../../dns/name/hashed-name.ts'
import { type Handler, Link, Trait } from '../../plugin/handler.ts'
import { ResponseKind, responseKind } from '../../plugin/status.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import type { ZoneSet } from '../../zone/lookup/zone-set.ts'
import type { EntrySender } from './entries/entry-sender.ts'
import { composeEntry } from './entry.ts'
import type { EntryPrinter } from './entry-printer.ts'
import type { LineFormat } from './format.ts'
import * as memory from './memory.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { entryWords } = memory

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
interface LogOut {
  readonly clock: Clock
  /** Prints entries that are not sent. */
  readonly printer: EntryPrinter
  /** Sends entries to the thread that prints for this one; undefined = no thread does. */
  readonly sender: EntrySender | undefined
}

/** Writes a line per query. The first rule whose names match decides, whatever its classes. */
export class Log extends Link {
  readonly name = 'log'
  readonly #rules: readonly LogRule[]
  readonly #out: LogOut
  /** True if the first rule matches every name. */
  readonly #isOne: boolean

  constructor(next: Handler, rules: readonly LogRule[], out: LogOut) {
    super(next, 0, Trait.Every)
    this.#rules = rules
    this.#out = out
    this.#isOne = rules[0]!.names.deepest === 0
  }

  /** @hot */
  override after(tx: Transaction, status: number): number {
    if (tx.server.isHandingOver) return status
    const rule = this.#isOne ? 0 : ruleOf(this.#rules, tx.query)
    if (rule === -1) return status
    const { classes, format } = this.#rules[rule]!
    if (classes !== undefined && !classes.has(classOf(tx, status))) return status
    const { sender, printer, clock } = this.#out
    if (sender !== undefined && !format.hasMetadata) {
      sender.send(tx, status, rule, format.hasDestination)
      return status
    }
    composeEntry(entryWords, 0, tx, status, rule, format.hasDestination, clock)
    printer.print(tx)
    return status
  }
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
