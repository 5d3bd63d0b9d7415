import type { Dispenser } from '../../corefile/dispenser.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { findMetadata } from '../../plugin/metadata.ts'
import { scanZoneArgs } from '../../plugin/zone-args.ts'
import { ZoneSet } from '../../plugin/zone-set.ts'
import { COMBINED_FORMAT, COMMON_FORMAT, LineFormat, unknownFields } from './format.ts'
import { CLASSES, classOf, Log, type LogClass, type LogRule, typeOf } from './log.ts'
import { LINE_OCTETS_MAX } from './memory.ts'
import { RecordPrinter } from './printer.ts'
import { RULE_MAX } from './record.ts'

/** `log [NAMES...] [FORMAT] { class all|success|denial|error... }`: a line per query. */
export const log: Directive = {
  name: 'log',
  setup(c) {
    const rules: LogRule[] = []
    while (c.dispenser.next()) {
      if (rules.length > RULE_MAX) throw c.dispenser.error(`more than ${RULE_MAX + 1} lines of log`)
      rules.push(scanRule(c))
    }
    // Here the response's rcode is the status: handlers store what they return.
    c.block.metadata.set('log/class', (tx) => classOf(tx, tx.response.rcode))
    c.block.metadata.set('log/type', (tx) => typeOf(tx, tx.response.rcode))
    const printer = new RecordPrinter(
      rules.map(({ format }) => format),
      c.lineWriter,
    )
    const records = c.recordUplink((octets) => printer.printAll(octets))
    const out = { clock: c.clock, printer, records }
    c.addHandler((next) => new Log(next, rules, out), { seesNotify: true })
  },
}

function scanRule(c: SetupContext): LogRule {
  const d = c.dispenser
  const args = d.remainingArgs()
  // A lone argument is always a name, even one with braces.
  const hasFormat = args.length > 1 && args.at(-1)!.includes('{')
  const format = formatText(hasFormat ? args.pop()! : '{common}')
  const names = scanZoneArgs(d, args.length === 0 ? ['.'] : args)
  for (const arg of args) warnOfName(c, arg)
  for (const field of unknownFields(format)) {
    c.warn(`log has no field ${field}: it is printed as it stands`, d.position())
  }
  return {
    names: new ZoneSet(names),
    format: compileFormat(c, format),
    classes: scanClasses(d),
  }
}

/** No query is for such a name: most likely it was meant as the format. */
function warnOfName(c: SetupContext, arg: string): void {
  if (!/[{}\s]/.test(arg)) return
  const message = `log: ${JSON.stringify(arg)} is read as a name, and no query is for it`
  c.warn(`${message}; write a name before a format: log . FORMAT`, c.dispenser.position())
}

/** Throws InputError where lines could be longer than there is room for: any client could make them so. */
function compileFormat(c: SetupContext, text: string): LineFormat {
  const format = new LineFormat(text, (label) => findMetadata(c.block, label))
  for (const label of format.labels) c.block.metadataRead.add(label)
  const { octetsMax } = format
  if (octetsMax <= LINE_OCTETS_MAX) return format
  const limits = `lines of up to ${octetsMax} octets, and ${LINE_OCTETS_MAX} are allowed`
  throw c.dispenser.error(`this format comes to ${limits}: leave fields out`)
}

/** A format with the names of whole formats in it, wherever they stand, written out. */
function formatText(arg: string): string {
  return arg.replaceAll('{common}', COMMON_FORMAT).replaceAll('{combined}', COMBINED_FORMAT)
}

function scanClasses(d: Dispenser): ReadonlySet<LogClass> | undefined {
  const classes = new Set<LogClass>()
  d.eachProperty(() => {
    if (d.value() !== 'class') throw d.argError()
    const args = d.remainingArgs()
    if (args.length === 0) throw d.argError()
    for (const arg of args) {
      const known = CLASSES.find((name) => name === arg)
      if (known === undefined) throw d.error(`invalid Class: ${arg}`)
      classes.add(known)
    }
  })
  return classes.size === 0 || classes.has('all') ? undefined : classes
}
