import { didYouMean } from '../../base/nearest.ts'
import { logForm } from '../../base/telemetry/log.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { isSubdomain } from '../../dns/name/name.ts'
import { isInBlock, scanZoneArgs } from '../../plugin/arguments/zones.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { ZoneSet } from '../../zone/lookup/zone-set.ts'
import { EntrySender } from './entries/entry-sender.ts'
import { printEntries } from './entries/print-entries.ts'
import { RULE_MAX } from './entry.ts'
import { EntryPrinter } from './entry-printer.ts'
import { COMBINED_FORMAT, COMMON_FORMAT, LineFormat, unknownFields } from './format.ts'
import { CLASSES, classOf, Log, type LogClass, type LogRule, typeOf } from './log.ts'
import { LINE_OCTETS_MAX } from './memory.ts'

/** `log [NAMES...] [FORMAT] { class all|success|denial|error... }`: one line per query. */
export const log: Directive = {
  name: 'log',
  setup(c) {
    const rules: LogRule[] = []
    const earlier: Uint8Array[] = []
    while (c.dispenser.next()) {
      if (rules.length > RULE_MAX) throw c.dispenser.error(`more than ${RULE_MAX + 1} lines of log`)
      rules.push(scanRule(c, earlier))
    }
    // Here the response's rcode is the status: handlers store what they return.
    c.block.metadata.providers.set('log/class', (tx) => classOf(tx, tx.response.rcode))
    c.block.metadata.providers.set('log/type', (tx) => typeOf(tx, tx.response.rcode))
    const formats = rules.map(({ format }) => format)
    const printer = new EntryPrinter(formats, c.lineWriter)
    const toControl = c.octetsToControl((octets) => printEntries(octets, formats, c.lineWriter))
    const sender = toControl === undefined ? undefined : new EntrySender(toControl, c.clock)
    const out = { clock: c.clock, printer, sender }
    return { handler: (next) => new Log(next, rules, out), seesNotify: true }
  },
}

/** `earlier`: names of the lines before this one, which decide first. Adds the names of this line. */
function scanRule(c: SetupContext, earlier: Uint8Array[]): LogRule {
  const d = c.dispenser
  const args = d.remainingArgs()
  // A single argument is always a name, even one with braces.
  const hasFormat = args.length > 1 && args.at(-1)!.includes('{')
  const format = formatText(hasFormat ? args.pop()! : '{common}')
  const names = scanZoneArgs(d, args.length === 0 ? ['.'] : args)
  for (const arg of args) warnOfName(c, arg, earlier)
  earlier.push(...names)
  for (const field of unknownFields(format)) {
    c.warn(`log has no field ${field}: it is printed unchanged`, d.position())
  }
  return {
    names: new ZoneSet(names),
    format: compileFormat(c, format),
    classes: scanClasses(d),
  }
}

/** Warns of a name that no query of the block matches. */
function warnOfName(c: SetupContext, arg: string, earlier: readonly Uint8Array[]): void {
  const warn = (message: string): void => c.warn(message, c.dispenser.position())
  const quoted = JSON.stringify(arg)
  if (/[{}\s]/.test(arg)) {
    const message = `log: ${quoted} is read as a name, and no query is for it`
    warn(`${message}; write a name before a format: log . FORMAT`)
    return
  }
  // A CIDR can stand for several names.
  const names = scanZoneArgs(c.dispenser, [arg])
  if (!names.some((name) => isInBlock(name, c.block))) {
    warn(`log: no query of the block is for ${quoted}: it is outside of the block's zones`)
    return
  }
  if (names.every((name) => earlier.some((other) => isSubdomain(name, other)))) {
    warn(`log: ${quoted} never matches: an earlier log of the block has its queries; move it up`)
  }
}

/** Throws InputError if lines could exceed the available room, because any client could cause them. */
function compileFormat(c: SetupContext, text: string): LineFormat {
  const jsonClock = logForm().name === 'json' ? c.clock : undefined
  const format = new LineFormat(text, (label) => c.block.metadata.find(label), jsonClock)
  for (const label of format.labels) c.block.metadata.read.add(label)
  const { octetsMax } = format
  if (octetsMax <= LINE_OCTETS_MAX) return format
  const limits = `lines of up to ${octetsMax} octets, and ${LINE_OCTETS_MAX} are allowed`
  throw c.dispenser.error(`this format has ${limits}; remove fields`)
}

/** Replaces the names of whole formats in a format, at any place, by their text. */
function formatText(arg: string): string {
  return arg.replaceAll('{common}', COMMON_FORMAT).replaceAll('{combined}', COMBINED_FORMAT)
}

function scanClasses(d: Dispenser): ReadonlySet<LogClass> | undefined {
  const classes = new Set<LogClass>()
  d.eachProperty(() => {
    if (d.value() !== 'class') throw d.argError()
    const args = d.remainingArgs(1)
    for (const arg of args) {
      const known = CLASSES.find((name) => name === arg)
      if (known === undefined) throw d.error(`invalid Class: ${arg}${didYouMean(arg, CLASSES)}`)
      classes.add(known)
    }
  })
  return classes.size === 0 || classes.has('all') ? undefined : classes
}
