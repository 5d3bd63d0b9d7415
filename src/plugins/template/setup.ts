import { InputError } from '../../base/errors.ts'
import type { LinearRegExp } from '../../base/re2/linear-regexp.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { printClass, printType, Rcode, scanClass, scanType } from '../../dns/iana/index.ts'
import { Section } from '../../dns/message/section.ts'
import { printName } from '../../dns/name/name.ts'
import {
  type Fallthrough,
  NO_FALLTHROUGH,
  scanFallthrough,
} from '../../plugin/arguments/fallthrough.ts'
import { scanPattern } from '../../plugin/arguments/pattern.ts'
import { scanAnsweredZones } from '../../plugin/arguments/zones.ts'
import { collectWhileServing } from '../../plugin/collect.ts'
import type { CounterSlots } from '../../plugin/counter-slots.ts'
import type { DirectivePart } from '../../plugin/description.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { compileWords } from '../../plugin/expression/compile-words.ts'
import { isFunction } from '../../plugin/expression/functions.ts'
import type { Handler } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { ZoneSet } from '../../zone/lookup/zone-set.ts'
import { Conditions } from './conditions.ts'
import { GoTemplate, groupNumber, TemplateError } from './go-template.ts'
import { ACTION, findLastingFault, scanRecord } from './record-text.ts'
import {
  countersOf,
  RECORD_COUNTERS,
  RecordCount,
  type RecordTemplate,
  type ReplyTemplate,
  Template,
  TemplateCount,
} from './template.ts'

const SECTIONS: ReadonlyMap<string, Section> = new Map<string, Section>([
  ['answer', Section.Answer],
  ['authority', Section.Authority],
  ['additional', Section.Additional],
])
const PROPERTIES: readonly string[] = [
  ...SECTIONS.keys(),
  'fallthrough',
  'match',
  'var',
  'expr',
  'rcode',
  'ederror',
]
/** Words of expr-lang that cannot be names of variables, and its functions that Sextant lacks. */
const RESERVED: ReadonlySet<string> = new Set(
  `and or not in matches contains startsWith endsWith let if else true false nil all none any one filter map count sum
  find findIndex findLast findLastIndex groupBy sortBy reduce len abs ceil floor round int float string trim trimPrefix
  trimSuffix upper lower split splitAfter repeat join indexOf lastIndexOf hasPrefix hasSuffix max min mean median toJSON
  fromJSON toBase64 fromBase64 now duration date timezone first last get take keys values toPairs fromPairs reverse uniq
  concat flatten sort bitand bitor bitxor bitnand bitshl bitshr bitushr bitnot`.split(/\s+/),
)
/** By Section. */
const SECTION_NAMES = ['answer', 'authority', 'additional'] as const
const EDE_CODE_MAX = 0xffff

/** The properties of a template while it is read. */
interface Draft {
  readonly patterns: LinearRegExp[]
  readonly records: RecordTemplate[]
  readonly conditions: Conditions
  rcode: number
  edeCode: number
  edeText: string
  fallthrough: Fallthrough
}

/** `template CLASS TYPE [ZONES...] { … }`: records that are made from the query. */
export const template: Directive = {
  name: 'template',
  setup(c) {
    const templates: ReplyTemplate[] = []
    let counters = 0
    while (c.dispenser.next()) {
      const scanned = scanTemplate(c, counters)
      templates.push(scanned)
      counters += scanned.zoneTexts.length * countersOf(scanned)
    }
    const slots = c.counters()
    slots.length = counters
    const metadata = (tx: Transaction, label: string): string => {
      return c.block.metadata.find(label)?.(tx) ?? ''
    }
    const handler = (next: Handler): Handler => new Template(next, templates, slots, metadata)
    return [exportCounts(c, templates, slots), { handler, answers: true, takesChaos: true }]
  },
}

function scanTemplate(c: SetupContext, counterStart: number): ReplyTemplate {
  const d = c.dispenser
  const [classText, typeText, ...zoneArgs] = d.remainingArgs()
  if (classText === undefined || typeText === undefined) throw d.argError()
  const qclass = scanClass(classText)
  if (qclass === undefined) throw d.error(`invalid query class ${classText}`)
  const qtype = scanType(typeText)
  if (qtype === undefined) throw d.error(`invalid RR type ${typeText}`)
  const zones = scanAnsweredZones(d, zoneArgs, c)
  const draft: Draft = {
    patterns: [],
    records: [],
    conditions: new Conditions(),
    rcode: Rcode.NOERROR,
    edeCode: -1,
    edeText: '',
    fallthrough: NO_FALLTHROUGH,
  }
  const references: (() => void)[] = []
  d.eachProperty(() => scanProperty(c, draft, references))
  for (const check of references) check()
  return {
    ...draft,
    zones: new ZoneSet(zones),
    zoneTexts: zones.map((zone) => printName(zone)),
    qclass,
    qtype,
    records: draft.records.toSorted((a, b) => a.section - b.section),
    edeText: new Uint8Array(Buffer.from(draft.edeText)),
    counterStart,
  }
}

/** `references`: checks that run once all regular expressions are known. */
function scanProperty(c: SetupContext, draft: Draft, references: (() => void)[]): void {
  const d = c.dispenser
  const property = d.value()
  const section = SECTIONS.get(property)
  if (property === 'fallthrough') {
    draft.fallthrough = scanFallthrough(d)
    return
  }
  const args = d.remainingArgs()
  if (section !== undefined) {
    if (args.length === 0) throw d.argError()
    for (const text of args)
      draft.records.push(scanRecordTemplate(c, section, text, draft, references))
    return
  }
  switch (property) {
    case 'match':
      if (args.length === 0) throw d.argError()
      draft.patterns.push(...args.map((text) => scanPattern(d, text)))
      return
    case 'rcode':
      draft.rcode = rcodeOf(d, args)
      return
    case 'ederror':
      scanExtendedError(d, args, draft)
      return
    case 'upstream':
      // CoreDNS ignores this option of older versions.
      return
    case 'var':
      defineVariable(c, draft.conditions, args)
      return
    case 'expr':
      if (args.length === 0) throw d.argError()
      requireCondition(c, draft.conditions, args)
      return
    default:
      throw d.unknownProperty(property, PROPERTIES)
  }
}

/** `var NAME EXPRESSION` */
function defineVariable(c: SetupContext, conditions: Conditions, args: readonly string[]): void {
  const d = c.dispenser
  const [name = '', ...words] = args
  if (words.length === 0) throw d.argError()
  if (!/^[A-Za-z_]\w*$/.test(name)) throw d.error(`invalid variable name ${JSON.stringify(name)}`)
  if (isFunction(name) || RESERVED.has(name) || conditions.variables.has(name)) {
    throw d.error(`variable name ${JSON.stringify(name)} is reserved, or used twice`)
  }
  conditions.define(name, compileWords(c, words, conditions))
}

/** `expr EXPRESSION` */
function requireCondition(c: SetupContext, conditions: Conditions, args: readonly string[]): void {
  const d = c.dispenser
  const term = compileWords(c, args, conditions)
  if (term.type !== 'boolean') {
    c.warn(`expression is a ${term.type}, not true or false: no query matches`, d.position())
  }
  conditions.require(term)
}

function rcodeOf(d: Dispenser, args: readonly string[]): number {
  if (args.length !== 1) throw d.argError()
  const rcode = Object.entries(Rcode).find(([name]) => name === args[0]!.toUpperCase())
  if (rcode === undefined) throw d.error(`unknown rcode ${args[0]}`)
  return rcode[1]
}

function scanExtendedError(d: Dispenser, args: readonly string[], draft: Draft): void {
  const [code = '', reason = ''] = args
  if (args.length !== 1 && args.length !== 2) throw d.argError()
  if (!/^\d{1,5}$/.test(code) || Number(code) > EDE_CODE_MAX) {
    throw d.error(`error parsing extended DNS error code ${code}`)
  }
  draft.edeCode = Number(code)
  draft.edeText = reason
}

function scanRecordTemplate(
  c: SetupContext,
  section: Section,
  source: string,
  draft: Draft,
  references: (() => void)[],
): RecordTemplate {
  const d = c.dispenser
  const text = compile(d, source)
  for (const label of text.references.labels) c.block.metadata.read.add(label)
  if (!text.isConstant) {
    const position = d.position()
    // What metadata and variables print may have several fields.
    const { labels, variables } = text.references
    const fault = labels.size + variables.size > 0 ? '' : findLastingFault(text.outline(ACTION))
    references.push(() => {
      const missing = findMissing(text, draft)
      if (missing === '') {
        if (fault !== '') c.warn(`no query makes this a record: ${source}: ${fault}`, position)
        return
      }
      const message = `the template has ${missing}: ${source}`
      const place = `${position.file}:${position.line} - Error during parsing`
      throw new InputError(position, `${place}: ${message}`)
    })
    return { section, source, text, record: undefined }
  }
  const record = scanRecord(source)
  if (typeof record === 'string')
    throw d.error(`${JSON.stringify(source)} is not a record: ${record}`)
  return { section, source, text, record }
}

function compile(d: Dispenser, source: string): GoTemplate {
  try {
    return new GoTemplate(source)
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error
    throw d.error(`could not compile template: ${source}, ${error.message}`)
  }
}

/** Returns what the text refers to and the template lacks, for an error; '' = nothing. */
function findMissing({ references }: GoTemplate, { patterns, conditions }: Draft): string {
  for (const name of references.variables) {
    if (!conditions.variables.has(name)) return `no var ${name}`
  }
  const most = Math.max(1, ...patterns.map(({ groupNames }) => groupNames.length))
  for (const name of references.groups) {
    const isNamed = patterns.some(({ groupNames }) => groupNames.includes(name))
    const number = groupNumber(name)
    if (!isNamed && (number === -1 || number >= most))
      return `no regular expression with a group ${name}`
  }
  for (const number of references.matches)
    if (number >= most) return `no regular expression with a group ${number}`
  return ''
}

function exportCounts(
  c: SetupContext,
  templates: readonly ReplyTemplate[],
  slots: CounterSlots,
): DirectivePart {
  const labels = ['server', 'zone', 'view', 'class', 'type']
  const counter = (name: string, help: string, more: readonly string[]) =>
    c.metrics.counter(`coredns_template_${name}_total`, help, [...labels, ...more])
  const matches = counter('matches', 'Counter of template regex matches.', [])
  const perRecord = ['section', 'template']
  const texts = counter('template_failures', 'Counter of go template failures.', perRecord)
  const records = counter('rr_failures', 'Counter of mis-templated RRs.', perRecord)
  return collectWhileServing(c, () =>
    slots.forEach((counts, { server, view }) => {
      for (const template of templates) {
        const kind = { class: printClass(template.qclass), type: printType(template.qtype) }
        template.zoneTexts.forEach((zone, z) => {
          const where = { server, zone, view, ...kind }
          const start = template.counterStart + z * countersOf(template)
          const add = (
            metric: typeof matches,
            index: number,
            more: Readonly<Record<string, string>> = {},
          ): void => {
            const count = counts.take(start + index)
            if (count > 0) metric.inc({ ...where, ...more }, count)
          }
          add(matches, TemplateCount.Matches)
          template.records.forEach(({ section, source }, i) => {
            const at = TemplateCount.Records + i * RECORD_COUNTERS
            const more = { section: SECTION_NAMES[section], template: source }
            add(texts, at + RecordCount.TextFailures, more)
            add(records, at + RecordCount.RecordFailures, more)
          })
        })
      }
    }),
  )
}
