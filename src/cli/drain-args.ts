import { scanDuration } from '../base/duration.ts'
import { scanTime } from '../base/rfc3339.ts'
import { ADMIN_FLAGS, type AdminArgs, isServer, scanAdminArgs } from './admin-args.ts'
import { type CommandArgs, flagsOf, isOn, scanMixed } from './args.ts'
import { type DataFormat, FORMAT_FLAG, scanFormat } from './data-format.ts'

/** The arguments of `sextant drain`, `undrain` and `drains`. */
export interface DrainArgs {
  /** Terms of the selector, or an id. */
  readonly words: readonly string[]
  /** Path of the Corefile, or `stdin`; undefined = ./Corefile if there is one. */
  readonly conf: string | undefined
  /** The drain file; undefined = the one that the Corefile names. */
  readonly file: string | undefined
  /** The running server whose drains are meant; undefined = those of the drain file. */
  readonly admin: AdminArgs | undefined
  readonly reason: string
  /** Undefined = the user of the system. */
  readonly actor: string | undefined
  /** Milliseconds since the epoch; undefined = until it is ended. */
  readonly untilMs: number | undefined
  /** The same, as written. */
  readonly until: string | undefined
  /** Accept a selector that matches nothing. */
  readonly allowsEmpty: boolean
  readonly format: DataFormat
}

const SELECTOR =
  'site:NAME, host:NAME, zone:NAME, id:TEXT, address:ADDRESS, geo:CODE or record:NAMESPACE/NAME; * stands for any text'
const FILE_FLAGS = flagsOf(`
  -conf FILE | (./Corefile) | the Corefile that names the drain file; with @ alone, the one that names the admin API
  --file FILE | (the file that the Corefile names) | the drain file
`)
const PLACE = '[@SERVER] [-conf FILE] [--file FILE] [-o FORMAT]'
const COMMON = [...FILE_FLAGS, ...ADMIN_FLAGS, ...FORMAT_FLAG]

export const DRAIN: CommandArgs = {
  usage: `drain SELECTOR... [--until TIME|DURATION] [--reason TEXT] [--actor NAME] ${PLACE}`,
  flags: [
    ...flagsOf(`
      SELECTOR... | | ${SELECTOR}
      --until TIME|DURATION | (no end) | end of the drain: a time, such as 2026-11-24T18:00:00Z, or a duration from now, such as 2h
      --reason TEXT | | reason for the drain, up to 1000 characters
      --actor NAME | (the user that runs the command) | name of the person or program that drains
      --allow-empty | | accept a selector that selects no endpoint
    `),
    ...COMMON,
  ],
}

export const UNDRAIN: CommandArgs = {
  usage: `undrain SELECTOR...|ID ${PLACE}`,
  flags: [
    ...flagsOf(`SELECTOR... | | ${SELECTOR}
    ID | | the id of a drain`),
    ...COMMON,
  ],
}

export const DRAINS: CommandArgs = {
  usage: `drains ${PLACE}`,
  flags: COMMON,
}

const COMMANDS = { drain: DRAIN, undrain: UNDRAIN, drains: DRAINS }

/** Reads the arguments of a command. Returns a string if they are invalid: the reason. */
export function scanDrainArgs(
  command: keyof typeof COMMANDS,
  argv: readonly string[],
  nowMs: number,
): DrainArgs | string {
  const flags = scanMixed(argv, COMMANDS[command].flags)
  if (typeof flags === 'string') return flags
  const { given, rest } = flags
  const words = rest.filter((word) => !isServer(word))
  const format = scanFormat(given)
  if (typeof format !== 'string') return format.fault
  if (command === 'drains' && words.length > 0)
    return `drains takes no selector: ${words.join(' ')}`
  const admin = scanAdminArgs(rest, given)
  if (typeof admin === 'string') return admin
  if (admin !== undefined && command !== 'drain' && given.has('file')) {
    return `${command} @SERVER concerns all drain files of the server; leave out --file`
  }
  const until = given.get('until')
  const untilMs = scanUntil(until, nowMs)
  if (typeof untilMs === 'string') return untilMs
  return {
    words,
    conf: given.get('conf') || undefined,
    file: given.get('file') || undefined,
    reason: given.get('reason') ?? '',
    actor: given.get('actor') || undefined,
    admin,
    untilMs,
    until,
    allowsEmpty: isOn(flags, 'allow-empty'),
    format,
  }
}

/** A duration from now, or a time in the future. Returns a string if it is invalid: the reason. */
function scanUntil(text: string | undefined, nowMs: number): number | string | undefined {
  if (text === undefined) return undefined
  const durationMs = scanDuration(text)
  const timeMs = durationMs === undefined ? scanTime(text) : nowMs + durationMs
  if (timeMs === undefined) {
    return `--until ${JSON.stringify(text)} is neither a duration, such as 2h, nor a time, such as 2026-11-24T18:00:00Z`
  }
  return timeMs > nowMs ? timeMs : `--until ${text} is in the past; the drain would end at once`
}
