import { scanDuration } from '../base/duration.ts'
import { scanTime } from '../base/rfc3339.ts'
import { ADMIN_FLAGS, type AdminArgs, isServer, scanAdminArgs } from './admin-target.ts'
import { scanFlags } from './args.ts'

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
  readonly isJson: boolean
}

type DrainCommand = 'drain' | 'undrain' | 'drains'

const VALUES: { readonly [command in DrainCommand]: readonly string[] } = {
  drain: ['file', 'until', 'reason', 'actor', ...ADMIN_FLAGS],
  undrain: ['file', ...ADMIN_FLAGS],
  drains: ['file', 'o', ...ADMIN_FLAGS],
}
const BOOLEANS: { readonly [command in DrainCommand]: readonly string[] } = {
  drain: ['allow-empty'],
  undrain: [],
  drains: [],
}

interface SplitArgs {
  /** Without servers. */
  readonly words: readonly string[]
  /** With their `@`. */
  readonly servers: readonly string[]
  readonly values: ReadonlyMap<string, string>
  readonly allowsEmpty: boolean
}

/** Reads the arguments of a command. Returns a string if they are invalid: the reason. */
export function scanDrainArgs(
  command: DrainCommand,
  argv: readonly string[],
  nowMs: number,
): DrainArgs | string {
  const split = splitArgs(command, argv)
  if (typeof split === 'string') return split
  const { words, servers, values, allowsEmpty } = split
  const output = values.get('o')
  if (output !== undefined && output !== 'json') return `-o must be json, got ${output}`
  if (command === 'drains' && words.length > 0)
    return `drains takes no selector: ${words.join(' ')}`
  const admin = scanAdminArgs(servers, values)
  if (typeof admin === 'string') return admin
  if (admin !== undefined && command !== 'drain' && values.has('file')) {
    return `${command} @SERVER concerns all drain files of the server; leave out --file`
  }
  const until = values.get('until')
  const untilMs = scanUntil(until, nowMs)
  if (typeof untilMs === 'string') return untilMs
  return {
    words,
    conf: values.get('conf') || undefined,
    file: values.get('file') || undefined,
    reason: values.get('reason') ?? '',
    actor: values.get('actor') || undefined,
    admin,
    untilMs,
    until,
    allowsEmpty,
    isJson: output === 'json',
  }
}

/** Flags may stand before and after the selector. */
function splitArgs(command: DrainCommand, argv: readonly string[]): SplitArgs | string {
  const words: string[] = []
  const values = new Map<string, string>()
  let allowsEmpty = false
  for (let rest = argv; rest.length > 0; ) {
    const flags = scanFlags(rest, BOOLEANS[command], VALUES[command])
    if (typeof flags === 'string') return flags
    for (const [name, value] of flags.values) values.set(name, value)
    allowsEmpty ||= flags.set.has('allow-empty')
    words.push(...flags.rest.slice(0, 1))
    rest = flags.rest.slice(1)
  }
  return {
    words: words.filter((word) => !isServer(word)),
    servers: words.filter(isServer),
    values,
    allowsEmpty,
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
