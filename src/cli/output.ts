import { LineBuffer, printLine } from '../telemetry/lines.ts'
import { escapeControls } from '../telemetry/log.ts'

/** The output of a command. */
export interface Output {
  /** Standard output, for lines as octets. */
  readonly lines: LineBuffer
  /** Prints one line to standard output. */
  print(line: string): void
  /** Prints one line to standard error; control characters are escaped. */
  printError(line: string): void
  /** Writes what is buffered. Call it before the process ends. */
  flush(): void
}

/** Returns a writer of log lines to standard error, for commands whose standard output is data. */
export function errorLines({ printError }: Pick<Output, 'printError'>): LineBuffer {
  const write = (octets: Buffer, done: () => void): void => {
    for (const line of octets.toString().split('\n')) if (line !== '') printError(line)
    done()
  }
  return new LineBuffer({ isBusy: () => false, write }, setImmediate)
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
  // If the reader of the pipe ends, the DNS server must not end.
  stdout.on('error', () => {})
  process.stderr.on('error', () => {})
  return {
    lines,
    print: (line) => printLine(lines, line),
    printError: (line) => process.stderr.write(`${escapeControls(line)}\n`),
    flush: () => lines.flush(),
  }
}
