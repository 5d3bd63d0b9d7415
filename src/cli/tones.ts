import { escapeControls } from '../base/telemetry/log.ts'

/** What a colour of the output means. */
export type Tone = 'heading' | 'good' | 'warning' | 'bad'

/** A text with a tone. */
export interface Toned {
  readonly text: string
  readonly tone: Tone
}

/** A line of output: a text, or parts one after the other. */
export type Line = string | readonly (string | Toned)[]

/** Parameters of SGR (ECMA-48 section 8.3.117): bold, green, yellow, red. */
const PARAMETERS = { heading: 1, good: 32, warning: 33, bad: 31 } as const

export function toned(tone: Tone, text: string): Toned {
  return { text, tone }
}

/** True if colours may be written to a stream: it is a terminal, and the user did not refuse them (no-color.org). */
export function hasColors(
  { isTTY }: { readonly isTTY?: boolean },
  { NO_COLOR, TERM }: Readonly<NodeJS.ProcessEnv>,
): boolean {
  return isTTY === true && (NO_COLOR ?? '') === '' && TERM !== 'dumb'
}

/** Returns a line with the control characters of its texts escaped, except tabs. `colors`: with its tones. */
export function composeLine(line: Line, colors: boolean): string {
  if (typeof line === 'string') return escaped(line)
  return line.map((part) => composePart(part, colors)).join('')
}

function composePart(part: string | Toned, colors: boolean): string {
  if (typeof part === 'string') return escaped(part)
  const text = escaped(part.text)
  return colors && text !== '' ? `\x1b[${PARAMETERS[part.tone]}m${text}\x1b[0m` : text
}

/** Tabs separate the columns of records and of log lines. */
function escaped(text: string): string {
  return text.replace(/[^\t]+/g, escapeControls)
}
