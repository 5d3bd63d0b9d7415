import { didYouMean } from '../../base/nearest.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { Rcode, scanClass, scanType } from '../../dns/iana/index.ts'
import { scanPattern } from '../../plugin/arguments/pattern.ts'
import {
  countGroups,
  MATCH_KINDS,
  type MatchKind,
  type NameChange,
  normalize,
  plainChange,
  regexChange,
} from './names.ts'
import { CnameChange, OwnerChange, RcodeChange, TtlChange, ValueChange } from './reply-changes.ts'
import type { OrderedRule } from './rewrite.ts'
import type { ReplyChange } from './rewriting.ts'
import {
  NameRule,
  NsidRule,
  NumberRule,
  type OptionAction,
  ReplyRule,
  type RewriteRule,
  SubnetRule,
} from './rules.ts'

const TTL_SECONDS_MAX = 2_147_483_647
/** Highest rcode that has a number in the Corefile. */
const RCODE_MAX = 23
/** CoreDNS's second name of code 16. */
const BADSIG = 16
const OPTION_ACTIONS: readonly string[] = ['set', 'append', 'replace', 'unset']

const RULE_TYPES = ['name', 'type', 'class', 'ttl', 'rcode', 'cname', 'edns0']

/** Reads one rule. Throws InputError. */
export function scanRule(d: Dispenser, args: readonly string[]): OrderedRule {
  const [first] = args
  if (first === undefined) throw d.error('no rule type specified for rewrite')
  const mode = first.toLowerCase()
  const hasMode = mode === 'continue' || mode === 'stop'
  const [field, ...rest] = hasMode ? args.slice(1) : args
  if (field === undefined) throw d.error(`${mode} rule must begin with a rule type`)
  return { rule: scanField(d, field, rest), stops: mode !== 'continue' }
}

function scanField(d: Dispenser, field: string, args: readonly string[]): RewriteRule {
  switch (field.toLowerCase()) {
    case 'name':
      return scanNameRule(d, args)
    case 'type':
      return scanNumberRule(d, 'type', args)
    case 'class':
      return scanNumberRule(d, 'class', args)
    case 'ttl':
      return scanTtlRule(d, args)
    case 'rcode':
      return scanRcodeRule(d, args)
    case 'cname':
      return scanCnameRule(d, args)
    case 'edns0':
      return scanOptionRule(d, args)
    case 'answer':
      throw d.error('response rewrites must begin with a name rule')
    default:
      throw d.error(`invalid rule type ${JSON.stringify(field)}${didYouMean(field, RULE_TYPES)}`)
  }
}

function scanNameRule(d: Dispenser, args: readonly string[]): NameRule {
  if (args.length < 2) throw d.error('too few arguments for a name rule')
  const [kindText, from = '', to = '', ...options] = args.length === 2 ? ['exact', ...args] : args
  const kind = scanKind(d, kindText, 'name')
  if (options[0] === 'metadata') {
    throw d.error('metadata in the new name is not supported; use groups of the regular expression')
  }
  const { isAuto, changes } = scanAnswers(d, kind, options)
  if (kind === 'suffix' && isAuto) {
    // The exchanged suffixes also fit names in the reply that are not below the rewritten name.
    const back = plainChange('suffix', normalize(to), normalize(from))
    const reverse = [new OwnerChange(back), new ValueChange(back)]
    return new NameRule(scanChange(d, kind, from, to), false, [...reverse, ...changes])
  }
  return new NameRule(scanChange(d, kind, from, to), isAuto || kind === 'exact', changes)
}

function scanKind(d: Dispenser, text: string | undefined, field: string): MatchKind {
  const kind = MATCH_KINDS.find((known) => known === text?.toLowerCase())
  if (kind !== undefined) return kind
  const kinds = 'exact, prefix, suffix, substring, and regex'
  throw d.error(`${field} rule supports only ${kinds} name matching, received: ${text}`)
}

function scanChange(d: Dispenser, kind: MatchKind, from: string, to: string): NameChange {
  return kind === 'regex'
    ? scanRegexChange(d, from, to)
    : plainChange(kind, normalize(from), normalize(to))
}

function scanRegexChange(d: Dispenser, from: string, to: string): NameChange {
  const pattern = scanPattern(d, from)
  if (countGroups(to) > pattern.groupNames.length - 1) {
    throw d.error(
      `the rewrite regex pattern (${to}) uses more subexpressions than its corresponding matching regex pattern (${from})`,
    )
  }
  return regexChange(pattern, normalize(to))
}

/** Reads `answer auto`, `answer name FROM TO` and `answer value FROM TO`. */
function scanAnswers(d: Dispenser, kind: MatchKind, options: readonly string[]) {
  const changes: ReplyChange[] = []
  let isAuto = false
  let hasNames = false
  if (options.length === 1) throw d.error(`invalid arguments for ${kind} rule`)
  const rest = [...options]
  if (rest.length > 0 && rest[0] !== 'answer') {
    throw d.error(
      `exceeded the number of arguments for a non-answer rule argument for ${kind} rule`,
    )
  }
  while (rest.length > 0) {
    if (rest[0] === 'answer') rest.shift()
    const type = rest.shift()
    if (type === undefined) throw d.error(`type missing for answer rule for ${kind} rule`)
    if (type === 'auto') {
      isAuto = true
      continue
    }
    if (type !== 'name' && type !== 'value') {
      throw d.error(`invalid type ${JSON.stringify(type)} for answer rule for ${kind} rule`)
    }
    const [from, to] = rest.splice(0, 2)
    if (from === undefined || to === undefined) {
      throw d.error(`${type} answer rule for ${kind} rule: 2 arguments required`)
    }
    const change = scanRegexChange(d, from, to)
    changes.push(type === 'name' ? new OwnerChange(change) : new ValueChange(change))
    hasNames ||= type === 'name'
  }
  if (isAuto && hasNames) {
    throw d.error('auto name answer rule cannot be combined with explicit name answer rules')
  }
  return { isAuto, changes }
}

function scanNumberRule(d: Dispenser, field: 'type' | 'class', args: readonly string[]) {
  if (args.length !== 2) throw d.error(`${field} rules must have exactly two arguments`)
  const scan = field === 'type' ? scanType : scanClass
  const [from, to] = args.map((text) => {
    const number = scan(text)
    if (number === undefined)
      throw d.error(`invalid ${field} ${JSON.stringify(text.toUpperCase())}`)
    return number
  })
  return new NumberRule(field === 'type' ? 'qtype' : 'qclass', from!, to!)
}

/** Reads the names that a rule of the reply concerns: `[KIND] NAME`. */
function scanConcerned(
  d: Dispenser,
  field: string,
  args: readonly string[],
): (name: string) => boolean {
  const [kindText, name = ''] = args.length === 1 ? ['exact', ...args] : args
  const kind = scanKind(d, kindText, field)
  if (kind === 'regex') {
    const pattern = scanPattern(d, name)
    return (text) => pattern.test(text)
  }
  const change = plainChange(kind, normalize(name), '')
  return (text) => change(text) !== undefined
}

function scanTtlRule(d: Dispenser, args: readonly string[]): ReplyRule {
  if (args.length < 2) throw d.error(`too few (${args.length}) arguments for a ttl rule`)
  if (args.length > 3) throw d.error(`too many (${args.length}) arguments for a ttl rule`)
  const text = args.at(-1)!
  const range = scanTtlRange(text)
  if (range === undefined) throw d.error(`invalid TTL '${text}' for a ttl rule`)
  return new ReplyRule(scanConcerned(d, 'ttl', args.slice(0, -1)), new TtlChange(...range))
}

/** `30`, `30-300`, `30-`, `-300`. */
function scanTtlRange(text: string): [min: number, max: number] | undefined {
  const [minText = '', maxText = minText, ...more] = text.split('-')
  const isNumbers = [minText, maxText].every((part) => /^\d{0,10}$/.test(part))
  if (!isNumbers || more.length > 0 || minText + maxText === '') return undefined
  const min = Number(minText)
  const max = maxText === '' ? TTL_SECONDS_MAX : Number(maxText)
  return min <= max && max <= 0xffff_ffff ? [min, max] : undefined
}

function scanRcodeRule(d: Dispenser, args: readonly string[]): ReplyRule {
  if (args.length < 3) throw d.error(`too few (${args.length}) arguments for a rcode rule`)
  if (args.length > 4) throw d.error(`too many (${args.length}) arguments for a rcode rule`)
  const [fromText = '', toText = ''] = args.slice(-2)
  const from = scanRcode(fromText)
  if (from === undefined) throw d.error(`invalid matching RCODE '${fromText}' for a rcode rule`)
  const to = scanRcode(toText)
  if (to === undefined) throw d.error(`invalid replacement RCODE '${toText}' for a rcode rule`)
  return new ReplyRule(scanConcerned(d, 'rcode', args.slice(0, -2)), new RcodeChange(from, to))
}

function scanRcode(text: string): number | undefined {
  if (/^\d{1,2}$/.test(text)) return Number(text) <= RCODE_MAX ? Number(text) : undefined
  const name = text.toUpperCase()
  if (name === 'BADSIG') return BADSIG
  return Object.entries(Rcode).find(([known]) => known === name)?.[1]
}

function scanCnameRule(d: Dispenser, args: readonly string[]): ReplyRule {
  if (args.length !== 2 && args.length !== 3) {
    throw d.error(`a cname rule has two or three arguments, not ${args.length}`)
  }
  const [kindText, from = '', to = ''] = args.length === 2 ? ['exact', ...args] : args
  const kind = scanKind(d, kindText, 'cname')
  const change =
    kind === 'exact' || kind === 'regex'
      ? scanChange(d, kind, from.toLowerCase(), to)
      : plainChange(kind, from.toLowerCase(), to.toLowerCase())
  return new ReplyRule(() => true, new CnameChange(change))
}

function scanOptionRule(d: Dispenser, args: readonly string[]): RewriteRule {
  const [type, actionText, ...rest] = args
  if (type === undefined || actionText === undefined) {
    throw d.error('too few arguments for an EDNS0 rule')
  }
  const action = actionText.toLowerCase()
  if (!OPTION_ACTIONS.includes(action)) throw d.error(`invalid action: ${JSON.stringify(action)}`)
  // Replies never have options that a rule added, so `revert` has nothing to do.
  if (action !== 'unset' && rest.at(-1) === 'revert') rest.pop()
  switch (type.toLowerCase()) {
    case 'nsid':
      if (rest.length > 0) throw d.error('EDNS0 NSID rules can accept no more than one arg')
      return new NsidRule(action as OptionAction)
    case 'subnet':
      return scanSubnetRule(d, action as OptionAction, rest)
    case 'local':
      throw d.error('edns0 local is not supported; remove the rule')
    default:
      throw d.error(`invalid rule type ${JSON.stringify(type)}`)
  }
}

function scanSubnetRule(d: Dispenser, action: OptionAction, rest: readonly string[]): SubnetRule {
  if (action === 'unset') {
    if (rest.length > 0) throw d.error('subnet unset action requires exactly one argument')
    return new SubnetRule(action, [0, 0])
  }
  if (rest.length !== 2) throw d.error('EDNS0 subnet rules require three or four args')
  const [v4 = '', v6 = ''] = rest
  return new SubnetRule(action, [scanBits(d, v4, 'IPv4', 32), scanBits(d, v6, 'IPv6', 128)])
}

function scanBits(d: Dispenser, text: string, family: string, most: number): number {
  const bits = /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN
  if (bits <= most) return bits
  throw d.error(`invalid ${family} bit mask length ${text}`)
}
