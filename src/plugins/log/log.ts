import { Rcode } from '../../dns/iana/index.ts'
import type { Handler } from '../../plugin/handler.ts'
import type { PlainLink } from '../../plugin/plain.ts'
import { ResponseKind, responseKind } from '../../plugin/status.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import type { ZoneSet } from '../../plugin/zone-set.ts'
import type { LineWriter } from '../../telemetry/lines.ts'
import type { LineFormat } from './format.ts'

export const CLASSES = ['all', 'success', 'denial', 'error'] as const
export type LogClass = (typeof CLASSES)[number]

/** Which queries are logged, and how. */
export interface LogRule {
  /** Names at or below one of these. */
  readonly names: ZoneSet
  readonly format: LineFormat
  /** Undefined = all. */
  readonly classes: ReadonlySet<LogClass> | undefined
}

/** Writes a line per query. The first rule that the name matches decides, whatever its classes. */
export class Log implements Handler {
  readonly name = 'log'
  readonly plain: PlainLink
  readonly #next: Handler
  readonly #rules: readonly LogRule[]
  readonly #lines: LineWriter

  constructor(next: Handler, rules: readonly LogRule[], lines: LineWriter) {
    this.#next = next
    this.plain = {
      kind: 'observe',
      observer: () => ({ readsAll: true, observe: (tx) => this.#observe(tx) }),
      next,
    }
    this.#rules = rules
    this.#lines = lines
  }

  serve(tx: Transaction): number | Promise<number> {
    const rule = this.#ruleOf(tx)
    const status = this.#next.serve(tx)
    if (rule === undefined) return status
    if (typeof status === 'number') return this.#finish(tx, status, rule)
    return status.then((late) => this.#finish(tx, late, rule))
  }

  #observe(tx: Transaction): void {
    const rule = this.#ruleOf(tx)
    if (rule !== undefined) this.#write(tx, Rcode.NOERROR, rule)
  }

  #ruleOf(tx: Transaction): LogRule | undefined {
    for (let i = 0; i < this.#rules.length; i++) {
      const rule = this.#rules[i]!
      if (rule.names.match(tx.query) !== -1) return rule
    }
    return undefined
  }

  /** @hot */
  #finish(tx: Transaction, status: number, rule: LogRule): number {
    if (!tx.server.isHandingOver) this.#write(tx, status, rule)
    return status
  }

  /** @hot */
  #write(tx: Transaction, status: number, rule: LogRule): void {
    const { classes, format } = rule
    if (classes === undefined || classes.has(classOf(tx, status))) {
      format.write(this.#lines, tx, status)
    }
  }
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

/** The type of a reply in CoreDNS's words: the metadata `log/type`. */
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
