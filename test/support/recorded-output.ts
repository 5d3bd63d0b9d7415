import type { Output } from '../../src/cli/output.ts'
import { composeLine } from '../../src/cli/tones.ts'
import { lineBufferTo } from './line-buffer.ts'

/** The output of a command that a test runs in its own process. */
export interface RecordedOutput {
  readonly output: Output
  readonly printed: string[]
  readonly errors: string[]
}

/** Returns an output that keeps its lines. The lines have no `directory`, with its slash. */
export function recordOutput(directory = ''): RecordedOutput {
  const printed: string[] = []
  const errors: string[] = []
  const short = (line: string): string => {
    return directory === '' ? line : line.replaceAll(`${directory}/`, '')
  }
  const output: Output = {
    lines: lineBufferTo(printed),
    print: (line) => printed.push(short(composeLine(line, false))),
    printError: (line) => errors.push(short(line)),
    flush: () => {},
  }
  return { output, printed, errors }
}
