import { escapeControls } from '../telemetry/log.ts'

/** Lines that wait are written at once when they come to this many characters. */
const BATCH_CHARACTERS = 65_536

/** Where a command writes. */
export interface Output {
  /** One line of standard output. */
  print(line: string): void
  /** One line of standard error; control characters are escaped. */
  printError(line: string): void
  /** Writes what waits; call it before the process ends. */
  flush(): void
}

/** Writes to the process's streams. Log lines of one turn of the event loop go out in one write. */
export function processOutput(): Output {
  let waiting = ''
  const flush = (): void => {
    if (waiting === '') return
    const text = waiting
    waiting = ''
    process.stdout.write(text)
  }
  process.once('exit', flush)
  // A reader that went away must not end a DNS server.
  process.stdout.on('error', () => {})
  process.stderr.on('error', () => {})
  return {
    print: (line) => {
      if (waiting === '') setImmediate(flush)
      waiting += `${line}\n`
      if (waiting.length >= BATCH_CHARACTERS) flush()
    },
    printError: (line) => process.stderr.write(`${escapeControls(line)}\n`),
    flush,
  }
}
