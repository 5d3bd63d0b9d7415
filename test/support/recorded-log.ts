import { createLogger, type Logger } from '../../src/base/telemetry/log.ts'

export interface RecordedLog {
  readonly log: Logger
  readonly lines: string[]
}

/** Returns a logger that keeps its lines, without debug lines. */
export function recordLog(): RecordedLog {
  const lines: string[] = []
  return {
    lines,
    log: createLogger(
      '',
      (line) => lines.push(line),
      () => false,
    ),
  }
}
