import { escapeControls } from '../base/telemetry/log.ts'
import { type Line, type Toned, toned } from './tones.ts'

/** A missing value is printed as `-`. */
type Cell = string | number | null | Toned
export type Row = readonly Cell[]

/** A longer cell does not widen its column: padding to it could need more memory than the process has. */
const WIDTH_MAX = 200

/** Returns a table as lines: the headings, then the rows. `gap`: spaces between columns. */
export function tableOf(headings: readonly string[], rows: readonly Row[], gap = 2): Line[] {
  return align([headings.map((text) => toned('heading', text)), ...rows], gap)
}

/** Returns rows as lines, with columns of equal width. */
export function align(rows: readonly Row[], gap = 2): Line[] {
  const cells = rows.map((row) => row.map(printable))
  const widths: number[] = []
  for (const row of cells) {
    for (const [i, { text }] of row.entries()) {
      if (text.length <= WIDTH_MAX) widths[i] = Math.max(widths[i] ?? 0, text.length)
    }
  }
  return cells.map((row) => lineOf(row, widths, gap))
}

interface PrintableCell {
  readonly text: string
  readonly tone: Toned['tone'] | undefined
}

/** A tab or an escaped character must not move what follows. */
function printable(cell: Cell): PrintableCell {
  const { text, tone } =
    typeof cell === 'object' && cell !== null
      ? cell
      : { text: cell === null ? '-' : String(cell), tone: undefined }
  return { text: escapeControls(text), tone }
}

/** The line has no spaces at its end. Parts without a tone are joined. */
function lineOf(row: readonly PrintableCell[], widths: readonly number[], gap: number): Line {
  const last = row.findLastIndex(({ text }) => text !== '')
  const parts: (string | Toned)[] = []
  let plain = ''
  for (const [i, { text, tone }] of row.slice(0, last + 1).entries()) {
    const padding = i === last ? '' : ' '.repeat(Math.max(0, (widths[i] ?? 0) - text.length) + gap)
    if (tone === undefined) plain += text + padding
    else {
      parts.push(plain, { text, tone })
      plain = padding
    }
  }
  return parts.length === 0 ? plain.trimEnd() : [...parts, plain]
}
