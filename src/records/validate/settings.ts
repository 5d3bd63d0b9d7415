import { printDuration, scanDuration } from '../../base/duration.ts'
import { InputError } from '../../base/errors.ts'
import { didYouMean } from '../../base/nearest.ts'
import { scanTime } from '../../base/rfc3339.ts'
import { scanGeoCode } from '../../geo/code.ts'
import { geoCodeHint } from '../../geo/code-hint.ts'
import {
  type AllDownPolicy,
  ANSWERS_MAX,
  CLOSED,
  type FailoverLine,
  OPEN,
  STICKY_DEFAULT,
  STICKY_IPV4_BITS_MAX,
  STICKY_IPV6_BITS_MAX,
  type StickyPrefix,
} from '../../steering/rules.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import { type Endpoint, GEO_CODES_MAX, SET_IDENTIFIER_CHARACTERS_MAX } from '../dns-record.ts'
import type { DrainSetting, RecordSettings, ShiftPlan } from '../settings.ts'
import { field, METADATA, mappingField, quote, RefusedError } from './fields.ts'

/** Every annotation that sets something begins so. */
export const SETTING_PREFIX = 'sextant.io/'

/** The settings of a record, by the part of the annotation's name behind the prefix, in order. */
export const SETTING_KEYS = [
  'all-down',
  'sticky',
  'answers',
  'failover',
  'drain',
  'drain-until',
  'shift',
] as const
export type SettingKey = (typeof SETTING_KEYS)[number]

/** The annotations of a DNSRecord that this server reads. */
export const SETTING_NAMES: readonly string[] = SETTING_KEYS.map((key) => SETTING_PREFIX + key)

/** Bounds on one failover list, so that settings fit the packed form of a record. */
const FAILOVER_CHARACTERS_MAX = 4096
const ENTRIES_MAX = GEO_CODES_MAX
const REASON_CHARACTERS_MAX = 1000

const SHIFT_STEPS_MAX = 20
const SHIFT_BAKE_MS_MIN = 1000
const SHIFT_BAKE_MS_MAX = 7 * 24 * 3600 * 1000
/** A percentage with up to two decimals. */
const PERCENT = /^(\d{1,3}(?:\.\d{1,2})?)%$/

type Mapping = { readonly [key: string]: YamlValue }
type Writable<T> = { -readonly [K in keyof T]: T[K] }

/**
 * Reads the settings of a record with these endpoints; undefined = it has none. Throws
 * RefusedError.
 */
export function scanSettings(
  metadata: Mapping,
  endpoints: readonly Pick<Endpoint, 'setIdentifier'>[],
): RecordSettings | undefined {
  if (field(metadata, 'annotations') === undefined) return undefined
  return readSettings(annotationsOf(metadata), (to) => {
    const known = new Set(endpoints.map(({ setIdentifier }) => setIdentifier))
    if (to !== '' && known.has(to)) return
    const hint = didYouMean(to, known)
    throw new SettingError(
      `shifts to ${quote(to)}, but no endpoint of the record has that setIdentifier${hint}`,
    )
  })
}

/**
 * Reads the drain that the annotations of a Namespace ask for; undefined = none. Throws
 * RefusedError.
 */
export function scanNamespaceDrain(metadata: Mapping): DrainSetting | undefined {
  return readDrain(annotationsOf(metadata))
}

/**
 * Reads settings as `printSettings` writes them; undefined = there are none. A setting that is invalid is left out, and
 * `onProblem` is called with what is wrong. A shift may name a set identifier that no endpoint has.
 */
export function scanSettingTexts(
  textOf: (key: SettingKey) => string | undefined,
  onProblem: (key: SettingKey, problem: string) => void,
): RecordSettings | undefined {
  const read: ReadSetting = (key, take) => {
    const text = textOf(key)
    if (text === undefined) return
    try {
      take(key === 'failover' ? splitFailover(text) : text)
    } catch (error) {
      if (!(error instanceof SettingError)) throw error
      onProblem(key, error.rule)
    }
  }
  return readSettings(read, (to) => {
    if (to !== '' && to.length <= SET_IDENTIFIER_CHARACTERS_MAX) return
    throw new SettingError('shifts to a set identifier that is empty or too long')
  })
}

/**
 * Prints settings in the form of their annotations, with all lines of `failover` on one line:
 * `GEO-EU:GEO-NA,GEO-AS;*:GEO-EU`.
 */
export function printSettings(settings: RecordSettings): [SettingKey, string][] {
  const { allDown, sticky, answers, failover, drain, shift } = settings
  const texts: [SettingKey, string][] = []
  if (allDown !== undefined) texts.push(['all-down', allDown])
  if (sticky !== undefined) texts.push(['sticky', printSticky(sticky)])
  if (answers !== undefined) texts.push(['answers', String(answers)])
  if (failover !== undefined) texts.push(['failover', printFailover(failover)])
  if (drain !== undefined) texts.push(['drain', drain.reason])
  if (drain?.untilMs !== undefined) texts.push(['drain-until', printExactTime(drain.untilMs)])
  if (shift !== undefined) texts.push(['shift', printShift(shift)])
  return texts
}

/** Calls `take` with the text of a setting, if it has one. */
type ReadSetting = (key: SettingKey, take: (text: string) => void) => void

/** `checkTarget` throws SettingError if traffic cannot be shifted to that set identifier. */
function readSettings(
  read: ReadSetting,
  checkTarget: (setIdentifier: string) => void,
): RecordSettings | undefined {
  const settings: Writable<RecordSettings> = {}
  // The order is part of the packed form: equal settings have equal text.
  read('all-down', (text) => {
    settings.allDown = scanAllDown(text)
  })
  read('sticky', (text) => {
    settings.sticky = scanSticky(text)
  })
  read('answers', (text) => {
    settings.answers = scanAnswersText(text)
  })
  read('failover', (text) => {
    settings.failover = scanFailover(text)
  })
  const drain = readDrain(read)
  if (drain !== undefined) settings.drain = drain
  read('shift', (text) => {
    settings.shift = scanShift(text, checkTarget)
  })
  return Object.keys(settings).length === 0 ? undefined : settings
}

function readDrain(read: ReadSetting): DrainSetting | undefined {
  let drain: DrainSetting | undefined
  read('drain', (text) => {
    drain = scanDrain(text)
  })
  read('drain-until', (text) => {
    drain = scanDrainUntil(text, drain)
  })
  return drain
}

/** Why a setting is invalid; `annotationsOf` adds the name of the annotation. */
class SettingError extends Error {
  /** The message without the text that breaks the rule. */
  readonly rule: string

  constructor(rule: string, got?: string) {
    super(got === undefined ? rule : `${rule}, got ${quote(got)}`)
    this.rule = rule
  }
}

/** Reads settings from annotations. Throws RefusedError. */
function annotationsOf(metadata: Mapping): ReadSetting {
  const annotations = mappingField(metadata, 'annotations', METADATA)
  return (key, take) => {
    const name = SETTING_PREFIX + key
    const value = field(annotations, name)
    if (value === undefined) return
    const place = METADATA.at('annotations').at(name)
    if (typeof value !== 'string') throw new RefusedError(place, `${name} must be a string`)
    try {
      take(value)
    } catch (error) {
      if (!(error instanceof SettingError)) throw error
      throw new RefusedError(place, `${name} ${error.message}`)
    }
  }
}

function scanAllDown(text: string): AllDownPolicy {
  const isFit = text !== '' && text.trim() === text && text.length <= SET_IDENTIFIER_CHARACTERS_MAX
  if (isFit) return text
  throw new SettingError(`must be ${OPEN}, ${CLOSED} or the set identifier of an endpoint`, text)
}

function scanSticky(text: string): StickyPrefix | 'off' {
  if (text === 'true') return STICKY_DEFAULT
  if (text === 'false') return 'off'
  const prefix = scanStickyPrefix(text.trim().split(/\s+/))
  if (prefix !== undefined) return prefix
  throw new SettingError('must be true, false or two prefix lengths, such as "24 56"', text)
}

/** Without `true`, whose prefix lengths another version may change. */
function printSticky(sticky: StickyPrefix | 'off'): string {
  return sticky === 'off' ? 'false' : `${sticky.ipv4Bits} ${sticky.ipv6Bits}`
}

function scanAnswersText(text: string): number | 'off' {
  if (text === 'off') return 'off'
  const answers = scanAnswers(text)
  if (answers !== undefined) return answers
  throw new SettingError(`must be a number from 1 to ${ANSWERS_MAX}, or off`, text)
}

/** Reads the largest number of endpoints in an answer; undefined = it is invalid. */
export function scanAnswers(text: string): number | undefined {
  const answers = /^[1-9]\d?$/.test(text) ? Number(text) : 0
  return answers >= 1 && answers <= ANSWERS_MAX ? answers : undefined
}

function scanDrain(reason: string): DrainSetting {
  if (reason.length <= REASON_CHARACTERS_MAX) return { reason }
  throw new SettingError(`is a reason of up to ${REASON_CHARACTERS_MAX} characters`)
}

function scanDrainUntil(text: string, drain: DrainSetting | undefined): DrainSetting {
  if (drain === undefined) throw new SettingError(`has no effect without ${SETTING_PREFIX}drain`)
  const untilMs = scanTime(text)
  if (untilMs !== undefined) return { ...drain, untilMs }
  throw new SettingError('must be a time, such as 2026-11-24T18:00:00Z', text)
}

/** Unlike `printTime`, keeps fractions of a second. */
function printExactTime(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z')
}

/** Reads the prefix lengths for IPv4 and IPv6; undefined = they are invalid. */
export function scanStickyPrefix(texts: readonly string[]): StickyPrefix | undefined {
  const [ipv4, ipv6] = texts
  if (texts.length !== 2 || !texts.every((text) => /^[1-9]\d?$/.test(text))) return undefined
  const prefix = { ipv4Bits: Number(ipv4), ipv6Bits: Number(ipv6) }
  const isFit = prefix.ipv4Bits <= STICKY_IPV4_BITS_MAX && prefix.ipv6Bits <= STICKY_IPV6_BITS_MAX
  return isFit ? prefix : undefined
}

/** Reads `CODE: ENTRY, ENTRY…`, one per line. Empty lines and lines that begin with `#` are skipped. */
function scanFailover(text: string): FailoverLine[] {
  if (text.length > FAILOVER_CHARACTERS_MAX) {
    throw new SettingError(`may have up to ${FAILOVER_CHARACTERS_MAX} characters`)
  }
  const lines: FailoverLine[] = []
  for (const raw of text.split('\n')) {
    const line = raw.trim()
    if (line === '' || line.startsWith('#')) continue
    const parsed = scanFailoverLine(line)
    if (lines.some(({ code }) => code === parsed.code)) {
      throw new SettingError(`has two lines for ${parsed.code}`)
    }
    lines.push(parsed)
  }
  if (lines.length === 0) throw new SettingError('has no line; write `GEO-EU: GEO-NA, GEO-AS`')
  return lines
}

function scanFailoverLine(line: string): FailoverLine {
  const colon = line.indexOf(':')
  if (colon === -1) {
    throw new SettingError(`line ${quote(line)} has no colon; write \`GEO-EU: GEO-NA, GEO-AS\``)
  }
  const key = line.slice(0, colon).trim()
  const code = scanGeoCode(key)
  if (code === undefined)
    throw new SettingError(
      `line ${quote(line)}: ${quote(key)} is not a geo code${geoCodeHint(key)}`,
    )
  const entries: string[] = []
  for (const part of line.slice(colon + 1).split(',')) {
    const entry = part.trim()
    if (entry === '') throw new SettingError(`line ${quote(line)} has an empty entry`)
    if (entries.includes(entry)) {
      throw new SettingError(`line ${quote(line)} has ${quote(entry)} twice`)
    }
    entries.push(entry)
  }
  if (entries.length > ENTRIES_MAX) {
    throw new SettingError(`line ${quote(line)} may have up to ${ENTRIES_MAX} entries`)
  }
  return { code: code.text, entries }
}

/**
 * Prints the lines with `;` between them. If an entry contains `;`, each line ends with a line break instead, so that
 * `splitFailover` can tell both forms apart. Lines have no blanks, so the text is at most as long as the annotation.
 */
function printFailover(lines: readonly FailoverLine[]): string {
  const texts = lines.map(({ code, entries }) => `${code}:${entries.join()}`)
  return texts.some((text) => text.includes(';')) ? `${texts.join('\n')}\n` : texts.join(';')
}

/** Returns lines as in the annotation. */
function splitFailover(text: string): string {
  return text.includes('\n') ? text.replace(/\n$/, '') : text.replaceAll(';', '\n')
}

function scanShift(text: string, checkTarget: (setIdentifier: string) => void): ShiftPlan {
  const pairs = text.trim().split(/\s+/).map(splitPair)
  const values = new Map(pairs)
  const to = values.get('to')
  const steps = values.get('steps')
  const bake = values.get('bake')
  if (to === undefined || steps === undefined || bake === undefined || pairs.length !== 3) {
    const form = '"to=ID steps=5%,25%,100% bake=10m"'
    throw new SettingError(`must have the form ${form}`, text)
  }
  checkTarget(to)
  return { to, steps: scanSteps(steps), bakeMs: scanBake(bake) }
}

/** Reads the parts of a shift that is ordered. Throws InputError. */
export function scanShiftParts(to: string, steps: string, bake: string): ShiftPlan {
  try {
    const isName = to !== '' && !/\s/.test(to)
    if (!isName) throw new SettingError('needs a set identifier without spaces', to)
    return { to, steps: scanSteps(steps), bakeMs: scanBake(bake) }
  } catch (error) {
    if (!(error instanceof SettingError)) throw error
    throw new InputError(undefined, `a shift ${error.message}`)
  }
}

function printShift({ to, steps, bakeMs }: ShiftPlan): string {
  const duration = printDuration(bakeMs)
  // `1.011s` scans to a little less than 1011 ms.
  const bake = scanDuration(duration) === bakeMs ? duration : `${bakeMs}ms`
  return `to=${to} steps=${steps.map((step) => `${step}%`).join()} bake=${bake}`
}

function splitPair(text: string): readonly [string, string] {
  const at = text.indexOf('=')
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

function scanSteps(text: string): readonly number[] {
  const steps = text.split(',').map((step) => Number(PERCENT.exec(step)?.[1]))
  const isAscending = steps.every((step, i) => step > (steps[i - 1] ?? 0) && step <= 100)
  if (isAscending && steps.length <= SHIFT_STEPS_MAX) return steps
  throw new SettingError(
    `needs up to ${SHIFT_STEPS_MAX} ascending steps above 0% and up to 100%, such as steps=5%,25%,100%`,
    text,
  )
}

function scanBake(text: string): number {
  const bakeMs = scanDuration(text)
  if (bakeMs !== undefined && bakeMs >= SHIFT_BAKE_MS_MIN && bakeMs <= SHIFT_BAKE_MS_MAX) {
    return bakeMs
  }
  const [least, most] = [printDuration(SHIFT_BAKE_MS_MIN), printDuration(SHIFT_BAKE_MS_MAX)]
  throw new SettingError(`needs bake, a duration from ${least} to ${most}`, text)
}
