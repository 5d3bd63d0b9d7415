import { LineBuffer, type OctetSink, printLine } from '../base/telemetry/lines.ts'
import { escapeControls, logForm } from '../base/telemetry/log.ts'
import { composeLine, composeScreen, hasColors, isScreen, type Line } from './tones.ts'

/** The output of a command. */
export interface Output {
  /** Standard output, for lines as octets. */
  readonly lines: LineBuffer
  /** Prints one line to standard output, with its control characters escaped except tabs. */
  print(line: Line): void
  /**
   * Prints an error to standard error in the form of log lines, or as text with its control characters escaped.
   * `isLogLine`: it is a finished log line.
   */
  printError(line: string, isLogLine?: boolean): void
  /** Draws lines over those that it drew before; undefined = standard output is no terminal that can. */
  readonly screen?: ((lines: readonly Line[]) => void) | undefined
  /** Writes what is buffered. Call it before the process ends. */
  flush(): void
}

/** Returns a writer of log lines to `printError`, for commands whose standard output is data. */
export function errorLines({ printError }: Pick<Output, 'printError'>): LineBuffer {
  const write = (octets: Buffer, done: () => void): void => {
    for (const line of octets.toString().split('\n')) if (line !== '') printError(line, true)
    done()
  }
  return new LineBuffer({ isBusy: () => false, write }, setImmediate)
}

/** The streams of the process. */
interface ProcessOutput extends Output {
  /** Resolves once standard output has all that was flushed, or its reader has ended. */
  written(): Promise<void>
}

/**
 * Writes to the process's streams. `isServer`: drops lines if the reader is slow, because a server must
 * not wait. Otherwise every line is kept until it is read.
 */
export function processOutput(isServer: boolean): ProcessOutput {
  const { stdout } = process
  const sink: OctetSink = isServer
    ? {
        isBusy: () => stdout.writableLength > 0,
        write: (octets, done) => stdout.write(octets, done),
      }
    : { isBusy: () => false, write: (octets) => stdout.write(Buffer.from(octets)) }
  const lines = new LineBuffer(sink, setImmediate)
  const colors = hasColors(stdout, process.env)
  process.once('exit', () => lines.flush())
  // If the reader of the pipe ends, the DNS server must not end.
  stdout.on('error', () => {})
  process.stderr.on('error', () => {})
  return {
    lines,
    print: (line) => printLine(lines, composeLine(line, colors)),
    printError: (line, isLogLine = false) => {
      // A terminal shows both streams: the lines that were printed before come first.
      lines.flush()
      process.stderr.write(`${isLogLine ? line : printFault(line, isServer)}\n`)
    },
    screen: isScreen(stdout, process.env)
      ? (drawn) => {
          lines.flush()
          stdout.write(composeScreen(drawn, stdout.rows, colors))
        }
      : undefined,
    flush: () => lines.flush(),
    written: () => new Promise((resolve) => stdout.write('', () => resolve())),
  }
}

/** Prints the reason why a command fails. */
function printFault(text: string, isServer: boolean): string {
  const form = logForm()
  if (form.name === 'text') return escapeControls(text)
  const kind = isServer
    ? ({ level: 'FATAL', event: 'start-failed' } as const)
    : ({ level: 'ERROR', event: 'command-failed' } as const)
  return form.print({ ...kind, origin: '', text, fields: undefined })
}
