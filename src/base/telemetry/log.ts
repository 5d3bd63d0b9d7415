/** Severity, in CoreDNS's words: a line reads `[LEVEL] plugin/NAME: text`. */
type LogLevel = 'DEBUG' | 'INFO' | 'WARNING' | 'ERROR' | 'FATAL'

/** The destination of finished lines, without their newline. */
export type LogSink = (line: string) => void

/** Writes lines of one origin. Control and format characters in the text are escaped: a client can't forge lines. */
export interface Logger {
  debug(text: string): void
  info(text: string): void
  warning(text: string): void
  error(text: string): void
}

/** A logger that writes nothing. */
export const SILENT_LOG: Logger = { debug() {}, info() {}, warning() {}, error() {} }

/**
 * Makes the logger of one origin. `origin`: `plugin/NAME`, or '' for the server itself. `debugOn`
 * is called per line, since the `debug` directive may be set up after the logger.
 */
export function createLogger(origin: string, sink: LogSink, debugOn: () => boolean): Logger {
  const prefix = origin === '' ? '' : `${origin}: `
  const write = (level: LogLevel, text: string): void => {
    sink(`[${level}] ${prefix}${escapeControls(text)}`)
  }
  return {
    debug: (text) => {
      if (debugOn()) write('DEBUG', text)
    },
    info: (text) => write('INFO', text),
    warning: (text) => write('WARNING', text),
    error: (text) => write('ERROR', text),
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
