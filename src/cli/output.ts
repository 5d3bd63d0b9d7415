import { LineBuffer, printLine } from '../telemetry/lines.ts'
import { escapeControls } from '../telemetry/log.ts'

/** Where a command writes. */
export interface Output {
  /** Standard output, for lines that come as octets. */
  readonly lines: LineBuffer
  /** One line of standard output. */
  print(line: string): void
  /** One line of standard error; control characters are escaped. */
  printError(line: string): void
  /** Writes what waits; call it before the process ends. */
  flush(): void
}

/** Writes to the process's streams. */
export function processOutput(): Output {
  const { stdout } = process
  const lines = new LineBuffer(
    {
      isBusy: () => stdout.writableLength > 0,
      write: (octets, done) => stdout.write(octets, done),
    },
    setImmediate,
  )
  process.once('exit', () => lines.flush())
  // A reader that went away must not end a DNS server.
  stdout.on('error', () => {})
  process.stderr.on('error', () => {})
  return {
    lines,
    print: (line) => printLine(lines, line),
    printError: (line) => process.stderr.write(`${escapeControls(line)}\n`),
    flush: () => lines.flush(),
  }
}
