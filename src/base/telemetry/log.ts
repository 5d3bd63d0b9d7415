/** Severity, in CoreDNS's words: a line reads `[LEVEL] plugin/NAME: text`. */
export type LogLevel = 'DEBUG' | 'INFO' | 'WARNING' | 'ERROR' | 'FATAL'

/** The destination of finished lines, without their newline. */
export type LogSink = (line: string) => void

/** Data of a line that programs read: the names of the fields are lower case with underscores. */
type LogFields = Readonly<Record<string, string | number | boolean>>

/**
 * Writes lines of one origin. Control and format characters in the text are escaped: a client can't forge lines.
 * `event` names the kind of line for programs, such as `zone-reloaded`; it stays when the text changes.
 */
export interface Logger {
  debug(text: string, event: string, fields?: LogFields): void
  info(text: string, event: string, fields?: LogFields): void
  warning(text: string, event: string, fields?: LogFields): void
  error(text: string, event: string, fields?: LogFields): void
}

/** A logger that writes nothing. */
export const SILENT_LOG: Logger = { debug() {}, info() {}, warning() {}, error() {} }

/** A line before it is text. */
export interface LogEntry {
  readonly level: LogLevel
  /** `plugin/NAME`, or '' for the server itself. */
  readonly origin: string
  readonly text: string
  readonly event: string
  readonly fields: LogFields | undefined
}

/** The form of all lines of a thread, as in CoreDNS: a thread sets it before it makes loggers. */
export interface LogForm {
  readonly name: 'text' | 'json' | 'zap'
  /** `nowMs`: the time of the line, in milliseconds since 1970; absent = that of the call. */
  print(entry: LogEntry, nowMs?: number): string
}

const TEXT_FORM: LogForm = {
  name: 'text',
  print: ({ level, origin, text }) =>
    `[${level}] ${origin === '' ? '' : `${origin}: `}${escapeControls(text)}`,
}

let form = TEXT_FORM

export function logForm(): LogForm {
  return form
}

/** `next`: undefined = text, as by default. */
export function setLogForm(next: LogForm | undefined): void {
  form = next ?? TEXT_FORM
}

/**
 * Makes the logger of one origin. `origin`: `plugin/NAME`, or '' for the server itself. `debugOn`
 * is called per line, since the `debug` directive may be set up after the logger.
 */
export function createLogger(origin: string, sink: LogSink, debugOn: () => boolean): Logger {
  const writer = (level: LogLevel) => (text: string, event: string, fields?: LogFields) => {
    sink(form.print({ level, origin, text, event, fields }))
  }
  const debug = writer('DEBUG')
  return {
    debug: (text, event, fields) => {
      if (debugOn()) debug(text, event, fields)
    },
    info: writer('INFO'),
    warning: writer('WARNING'),
    error: writer('ERROR'),
  }
}

/**
 * Replaces controls by `\xNN`, so that one event is always one line. Replaces line separators and format characters by
 * `\uNNNN` or `\u{N}`: bidirectional ones reorder a line on a terminal, and zero-width ones are invisible.
 */
export function escapeControls(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (c) => {
    const code = c.codePointAt(0)!
    const hex = code.toString(16)
    if (code < 0x100) return `\\x${hex.padStart(2, '0')}`
    return code < 0x10000 ? `\\u${hex.padStart(4, '0')}` : `\\u{${hex}}`
  })
}
