import { InputError } from '../base/errors.ts'
import { printLine } from '../base/telemetry/lines.ts'
import { createLogger, type Logger, logForm, setLogForm } from '../base/telemetry/log.ts'
import { type Level, scanOperatorArgs } from './operator-args.ts'
import type { Output } from './output.ts'
import { zapLines } from './zap-lines.ts'

/**
 * `sextant operator`: publishes the DNSRecords of a cluster until a signal ends it. Resolves to the
 * exit code: 0, 1 = did not start, 2 = interrupted twice.
 */
export async function runOperator(argv: readonly string[], output: Output): Promise<number> {
  const args = scanOperatorArgs(argv, process.env)
  if (typeof args === 'string') {
    output.printError(args)
    return 1
  }
  const form = zapLines(args.zap)
  if (form !== undefined && logForm().name === 'json') {
    output.printError(
      '-log-format=json and flags of zap both set the form of log lines: remove one',
    )
    return 1
  }
  if (form !== undefined) setLogForm(form)
  try {
    const { serveOperator } = await import('./serve-operator.ts')
    return await serveOperator(
      args,
      createLevelLogger(args.level, (line) => printLine(output.lines, line)),
    )
  } catch (error) {
    output.printError(printError(error))
    return 1
  }
}

function printError(error: unknown): string {
  if (error instanceof InputError) return error.print()
  return error instanceof Error ? error.message : String(error)
}

/** A logger in the server's format, without lines below `level`. */
function createLevelLogger(level: Level, sink: (line: string) => void): Logger {
  const log = createLogger('', sink, () => level === 'debug')
  const mute = (): void => {}
  const isError = level === 'error' || level === 'panic'
  return {
    debug: log.debug,
    info: level === 'warning' || isError ? mute : log.info,
    warning: isError ? mute : log.warning,
    error: level === 'panic' ? mute : log.error,
  }
}
