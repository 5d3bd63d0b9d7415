import { scanGeoCode } from '../../geo/code.ts'
import { continentOf } from '../../geo/countries.ts'
import { type LuaBranch, LuaFault, type LuaValue } from './lua-syntax.ts'

/** Targets that one draw returns together. */
interface LuaTargets {
  readonly targets: readonly string[]
  /** Undefined = all targets of the choice are returned together. */
  readonly weight: number | undefined
}

/** How the targets of a choice are checked, as PowerDNS does. */
export interface LuaCheck {
  /** Of ifurlup; undefined = a TCP connection to `port`. */
  readonly url: URL | undefined
  readonly port: number
  /** The options of the call that are no selectors, by name. */
  readonly options: ReadonlyMap<string, string>
}

/** What some clients get. */
export interface LuaChoice {
  /** Geo codes of the clients; empty = all others. */
  readonly codes: readonly string[]
  readonly targets: readonly LuaTargets[]
  readonly check: LuaCheck | undefined
  /** Each client keeps its target. */
  readonly isSticky: boolean
  /** Clients get the nearest target. PowerDNS looks up where its targets are. */
  readonly isNearest: boolean
  /** How many targets an answer has at most; 0 = one draw. */
  readonly answers: number
  /** What acts in another way in Sextant. */
  readonly notes: readonly string[]
}

type Targets = Pick<LuaChoice, 'targets' | 'isSticky' | 'isNearest' | 'answers' | 'notes'>

const NO_TRAITS = { isSticky: false, isNearest: false, answers: 0, notes: [] } as const

/** Conditions by the name of their function, each with the geo code of an argument. */
const CONDITIONS: ReadonlyMap<string, (text: string) => string> = new Map([
  ['continent', (text: string) => `GEO-${text}`],
  ['country', (text: string) => text],
  ['region', (text: string) => text],
  ['asnum', (text: string) => `AS${text}`],
])

/** What clients get, by the condition that they meet. Throws LuaFault for what has no equivalent. */
export function readChoices(branches: readonly LuaBranch[]): readonly LuaChoice[] {
  const choices: LuaChoice[] = []
  for (const { condition, value } of branches) {
    const codes = condition === undefined ? [] : codesOf(condition)
    choices.push({ codes, ...choiceOf(value) })
    if (condition === undefined) break
  }
  return choices.map((choice, i) => ({
    ...choice,
    notes: [...choice.notes, ...orderNotes(choice, choices.slice(0, i))],
  }))
}

/** The first condition that holds decides in a script, the narrowest code in a DNSRecord. */
function orderNotes({ codes }: LuaChoice, before: readonly LuaChoice[]): string[] {
  const wider = before.flatMap((choice) => choice.codes)
  const hidden = codes.filter((code) => wider.some((other) => isWithin(code, other)))
  return hidden.map(
    (code) => `${code} comes after a wider condition. Sextant prefers the narrower one`,
  )
}

function isWithin(code: string, other: string): boolean {
  const country = code.slice(0, 2)
  if (code.startsWith('GEO-') || code.startsWith('AS')) return code === other
  return code === other || country === other || other === `GEO-${continentOf(country)}`
}

function codesOf(condition: LuaValue): readonly string[] {
  if (condition.kind === 'or') return condition.parts.flatMap(codesOf)
  if (condition.kind !== 'call') throw new LuaFault('a condition that is no call of a function')
  const codeOf = CONDITIONS.get(condition.name)
  if (codeOf === undefined) throw new LuaFault(noEqual(condition.name))
  const [argument] = condition.args
  if (argument === undefined) throw new LuaFault(`${condition.name} without an argument`)
  return scalarsOf(argument).map((text) => {
    const code = codeOf(text.toUpperCase())
    if (scanGeoCode(code) === undefined)
      throw new LuaFault(`${condition.name}(${JSON.stringify(text)}) is not a place`)
    return code
  })
}

function choiceOf(value: LuaValue): Omit<LuaChoice, 'codes'> {
  if (value.kind === 'call' && (value.name === 'ifportup' || value.name === 'ifurlup'))
    return checkedOf(value)
  return { ...targetsOf(value), check: undefined }
}

function targetsOf(value: LuaValue): Targets {
  if (value.kind === 'text') return { ...NO_TRAITS, targets: [together([value.text])] }
  if (value.kind === 'table') return { ...NO_TRAITS, targets: [together(scalarsOf(value))] }
  if (value.kind !== 'call') throw new LuaFault(`a value that is a ${value.kind}`)
  const [argument, ...others] = value.args
  if (argument === undefined) throw new LuaFault(`${value.name} without an argument`)
  switch (value.name) {
    case 'all':
      return { ...NO_TRAITS, targets: [together(scalarsOf(argument))] }
    case 'pickrandom':
      return { ...NO_TRAITS, targets: evenly(scalarsOf(argument)) }
    case 'pickhashed':
      return { ...NO_TRAITS, targets: evenly(scalarsOf(argument)), isSticky: true }
    case 'pickwrandom':
      return { ...NO_TRAITS, targets: weighted(argument) }
    case 'pickwhashed':
    case 'pickchashed':
      return { ...NO_TRAITS, targets: weighted(argument), isSticky: true }
    case 'pickclosest':
    case 'closest':
      return { ...NO_TRAITS, targets: evenly(scalarsOf(argument)), isNearest: true }
    case 'pickrandomsample':
      return sampled(argument, others[0])
    default:
      throw new LuaFault(noEqual(value.name))
  }
}

/** pickrandomsample(N, ADDRESSES): the caller passes the two arguments in this order. */
function sampled(count: LuaValue, addresses: LuaValue | undefined): Targets {
  if (count.kind !== 'number' || addresses === undefined)
    throw new LuaFault('pickrandomsample without a number and a list')
  return { ...NO_TRAITS, targets: evenly(scalarsOf(addresses)), answers: count.number }
}

/** ifportup(PORT, ADDRESSES, OPTIONS), ifurlup(URL, ADDRESSES, OPTIONS). */
function checkedOf(call: LuaValue & { readonly kind: 'call' }): Omit<LuaChoice, 'codes'> {
  const [what, addresses, options] = call.args
  const isUrl = call.name === 'ifurlup'
  if (what?.kind !== (isUrl ? 'text' : 'number') || addresses?.kind !== 'table')
    throw new LuaFault(`${call.name} without its ${isUrl ? 'URL' : 'port'} and addresses`)
  const settings = optionsOf(options)
  const selector = settings.get('selector') ?? 'random'
  const sets = setsOf(addresses)
  const chosen = selected(selector, sets[0] ?? [])
  const notes: string[] = []
  if (settings.has('backupSelector'))
    notes.push('backupSelector: see the annotation sextant.io/all-down')
  if (sets.length > 2)
    notes.push('the second group of addresses and those after it are one standby')
  return {
    ...chosen,
    targets: [...chosen.targets, ...standbys(sets.slice(1).flat())],
    notes: [...chosen.notes, ...notes],
    check: {
      url: what.kind === 'text' ? urlOf(what.text) : undefined,
      port: what.kind === 'number' ? what.number : 0,
      options: new Map([...settings].filter(([name]) => !name.endsWith('elector'))),
    },
  }
}

function urlOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url !== undefined && /^https?:$/.test(url.protocol)) return url
  throw new LuaFault(`${JSON.stringify(text)} is not a URL`)
}

/** What the selector of a checked group does, in the words of the functions. */
function selected(selector: string, targets: readonly string[]): Targets {
  switch (selector) {
    case 'all':
      return { ...NO_TRAITS, targets: [together(targets)] }
    case 'random':
      return { ...NO_TRAITS, targets: evenly(targets) }
    case 'hashed':
      return { ...NO_TRAITS, targets: evenly(targets), isSticky: true }
    case 'pickclosest':
      return { ...NO_TRAITS, targets: evenly(targets), isNearest: true }
    default:
      throw new LuaFault(`the selector ${JSON.stringify(selector)} has no equivalent`)
  }
}

/** The groups of addresses: one of a flat list, or each table of a list of tables. */
function setsOf(addresses: LuaValue & { readonly kind: 'table' }): readonly (readonly string[])[] {
  const isFlat = addresses.entries.every(({ value }) => value.kind === 'text')
  return isFlat ? [scalarsOf(addresses)] : addresses.entries.map(({ value }) => scalarsOf(value))
}

function optionsOf(options: LuaValue | undefined): ReadonlyMap<string, string> {
  const settings = new Map<string, string>()
  if (options === undefined) return settings
  if (options.kind !== 'table') throw new LuaFault('options that are no table')
  for (const { key, value } of options.entries) {
    if (key !== undefined) settings.set(key, scalarOf(value))
  }
  return settings
}

function together(targets: readonly string[]): LuaTargets {
  return { targets, weight: undefined }
}

function evenly(targets: readonly string[]): readonly LuaTargets[] {
  return targets.map((target) => ({ targets: [target], weight: 1 }))
}

function standbys(targets: readonly string[]): readonly LuaTargets[] {
  return targets.map((target) => ({ targets: [target], weight: 0 }))
}

/** `{{WEIGHT, ADDRESS}, …}`; ADDRESS may be a text or a number. */
function weighted(value: LuaValue): readonly LuaTargets[] {
  if (value.kind !== 'table') throw new LuaFault('weights that are no table')
  return value.entries.map(({ value: pair }) => {
    const [weight = '', ...targets] = scalarsOf(pair)
    const number = Number(weight)
    if (targets.length !== 1 || weight === '' || !Number.isFinite(number))
      throw new LuaFault('a weight must be {NUMBER, ADDRESS}')
    return { targets, weight: Math.round(number) }
  })
}

function scalarsOf(value: LuaValue): readonly string[] {
  if (value.kind !== 'table') return [scalarOf(value)]
  return value.entries.map((entry) => scalarOf(entry.value))
}

function scalarOf(value: LuaValue): string {
  if (value.kind === 'text') return value.text
  if (value.kind === 'number') return String(value.number)
  if (value.kind === 'boolean') return String(value.isTrue)
  throw new LuaFault(
    value.kind === 'call' ? noEqual(value.name) : `a ${value.kind} where a text is expected`,
  )
}

function noEqual(name: string): string {
  return `${name} has no equivalent`
}
