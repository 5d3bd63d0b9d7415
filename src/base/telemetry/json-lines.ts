import { systemClock } from '../clock.ts'
import { printJsonText } from '../json-text.ts'
import type { LogForm, LogLevel } from './log.ts'

/** Levels as CoreDNS prints them in JSON. */
const LEVELS: Readonly<Record<LogLevel, string>> = {
  DEBUG: 'DEBUG',
  INFO: 'INFO',
  WARNING: 'WARN',
  ERROR: 'ERROR',
  FATAL: 'FATAL',
}

/** One JSON object a line, with CoreDNS's fields `time`, `level`, `msg` and `plugin`, then `event` and its fields. */
export const JSON_LINES: LogForm = {
  name: 'json',
  print: ({ level, origin, text, event, fields }, nowMs = systemClock.now()) => {
    const plugin = origin === '' ? {} : { plugin: origin.replace(/^plugin\//, '') }
    const time = new Date(nowMs).toISOString()
    return printJsonText({ time, level: LEVELS[level], msg: text, ...plugin, event, ...fields })
  },
}
