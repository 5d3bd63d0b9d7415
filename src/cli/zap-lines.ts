import { systemClock } from '../base/clock.ts'
import { printJsonText } from '../base/json-text.ts'
import {
  escapeControls,
  type LogEntry,
  type LogForm,
  type LogLevel,
} from '../base/telemetry/log.ts'

/** The flags of controller-runtime's zap options, with their values. */
export const ZAP_CHOICES = {
  'zap-encoder': ['json', 'console'],
  'zap-stacktrace-level': ['info', 'error', 'panic'],
  'zap-time-encoding': ['epoch', 'millis', 'nano', 'nanos', 'iso8601', 'rfc3339', 'rfc3339nano'],
} as const

/** Their values in lower case; '' = the flag is not given. */
export interface ZapOptions {
  readonly encoder: string
  readonly timeEncoding: string
  readonly stacktraceLevel: string
}

const LEVELS: readonly LogLevel[] = ['DEBUG', 'INFO', 'WARNING', 'ERROR', 'FATAL']
/** A panic of zap ends the process. */
const STACKTRACE_LEVELS: Readonly<Record<string, LogLevel>> = {
  info: 'INFO',
  error: 'ERROR',
  panic: 'FATAL',
}

/** Returns the form of lines as zap prints them; undefined = no flag asks for it. */
export function zapLines(options: ZapOptions): LogForm | undefined {
  const { encoder, timeEncoding, stacktraceLevel } = options
  if (encoder === '' && timeEncoding === '' && stacktraceLevel === '') return undefined
  const stackFrom = LEVELS.indexOf(STACKTRACE_LEVELS[stacktraceLevel] ?? 'FATAL')
  const hasStack = ({ level }: LogEntry) =>
    stacktraceLevel !== '' && LEVELS.indexOf(level) >= stackFrom
  const print = encoder === 'json' ? printJson : printConsole
  return {
    name: 'zap',
    print: (entry, nowMs = systemClock.now()) =>
      print(entry, printTime(nowMs, timeEncoding), hasStack(entry) ? stack() : ''),
  }
}

function printJson(entry: LogEntry, ts: string | number, stacktrace: string): string {
  const { level, text, origin, event, fields } = entry
  const head = {
    level: nameOf(level).toLowerCase(),
    ts,
    ...(origin === '' ? {} : { logger: origin }),
  }
  const tail = stacktrace === '' ? {} : { stacktrace }
  return printJsonText({ ...head, msg: text, event, ...fields, ...tail })
}

function printConsole(entry: LogEntry, ts: string | number, stacktrace: string): string {
  const { level, text, origin, event, fields } = entry
  const columns = [String(ts), nameOf(level), ...(origin === '' ? [] : [origin])]
  const line = [...columns, escapeControls(text), printJsonText({ event, ...fields })].join('\t')
  return stacktrace === '' ? line : `${line}\n${stacktrace}`
}

function nameOf(level: LogLevel): string {
  return level === 'WARNING' ? 'WARN' : level
}

function printTime(ms: number, encoding: string): string | number {
  const iso = new Date(ms).toISOString()
  switch (encoding) {
    case 'epoch':
      return ms / 1000
    case 'millis':
      return ms
    case 'nano':
    case 'nanos':
      return ms * 1e6
    case 'iso8601':
      return iso
    case 'rfc3339nano':
      return iso.replace(/\.?0*Z$/, 'Z')
    default:
      return iso.replace(/\.\d+Z$/, 'Z')
  }
}

/** The calls that led to the line, without those of the logger. */
function stack(): string {
  const calls = (new Error().stack ?? '').split('\n').slice(1)
  const own = calls.findLastIndex((call) => /telemetry\/log\.[jt]s/.test(call))
  return calls.slice(own + 1).join('\n')
}
