/** A longer cell does not widen its column: padding to it could need more memory than the process has. */
const WIDTH_MAX = 200

/** Returns the rows of a table as lines, with columns of equal width. A missing value is `-`. */
export function align(rows: readonly (readonly (string | number | null)[])[]): string[] {
  const texts = rows.map((row) => row.map((cell) => (cell === null ? '-' : String(cell))))
  const widths: number[] = []
  for (const row of texts) {
    for (const [i, { length }] of row.entries()) {
      if (length <= WIDTH_MAX) widths[i] = Math.max(widths[i] ?? 0, length)
    }
  }
  return texts.map((row) =>
    row
      .map((text, i) => text.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
