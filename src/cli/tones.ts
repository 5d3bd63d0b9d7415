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

interface Stream {
  readonly isTTY?: boolean
}

type Environment = Readonly<NodeJS.ProcessEnv>

/** True if colours may be written to a stream: it is a terminal, and the user did not refuse them (no-color.org). */
export function hasColors(stream: Stream, env: Environment): boolean {
  return isScreen(stream, env) && (env.NO_COLOR ?? '') === ''
}

/** True if a stream is a terminal whose cursor moves. */
export function isScreen({ isTTY }: Stream, { TERM }: Environment): boolean {
  return isTTY === true && TERM !== 'dumb'
}

/** CUP, EL and ED (ECMA-48 section 8.3), and DECAWM: without it, a long line ends at the edge. */
const SCREEN = { home: '\x1b[H', endLine: '\x1b[K', endScreen: '\x1b[J' } as const
const WRAP = { off: '\x1b[?7l', on: '\x1b[?7h' } as const

/** Returns what draws lines from the top of a terminal with so many rows; 0 = unknown. */
export function composeScreen(lines: readonly Line[], rows: number, colors: boolean): string {
  const room = rows === 0 ? lines.length : Math.max(1, rows - 1)
  const shown = lines.length <= room ? lines : lines.slice(0, room - 1)
  const left = lines.length - shown.length
  const more: readonly Line[] = left === 0 ? [] : [`and ${left} more lines`]
  const drawn = [...shown, ...more].map((line) => `${composeLine(line, colors)}${SCREEN.endLine}\n`)
  return `${WRAP.off}${SCREEN.home}${drawn.join('')}${SCREEN.endScreen}${WRAP.on}`
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
