/** Severity, in CoreDNS's words: a line reads `[LEVEL] plugin/NAME: text`. */
export type LogLevel = 'DEBUG' | 'INFO' | 'WARNING' | 'ERROR' | 'FATAL'

/** Where finished lines go, without their newline. */
export type LogSink = (line: string) => void

/** Writes lines of one origin. Control characters in the text are escaped: a client can't forge lines. */
export interface Logger {
  debug(text: string): void
  info(text: string): void
  warning(text: string): void
  error(text: string): void
}

/**
 * Makes the logger of one origin. `origin`: `plugin/NAME`, or '' for the server itself. `debugOn` is
 * asked per line, since the `debug` directive may be set up after the logger.
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

/** Replaces C0 controls, DEL and C1 controls by `\xNN`, so that one event is always one line. */
export function escapeControls(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is the point
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, (c) => {
    const code = c.charCodeAt(0)
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16)}`
  })
}
