// The table: medians of each server, and ratios to Sextant that were taken round by round.
import { median } from '../median.mjs'

const COLUMNS = [
  ['q/s', (row) => median(row.rounds.map((round) => round.qps)).toFixed(0)],
  ['user us', (row) => median(row.rounds.map((round) => round.userUs)).toFixed(2)],
  ['system us', (row) => median(row.rounds.map((round) => round.systemUs)).toFixed(2)],
  ['p50 us', (row) => median(row.rounds.map((round) => round.p50Us)).toFixed(0)],
  ['p99 us', (row) => median(row.rounds.map((round) => round.p99Us)).toFixed(0)],
  ['RSS MiB', (row) => row.residentMib.toFixed(0)],
  ['cores', (row) => median(row.rounds.map((round) => round.serverCores)).toFixed(2)],
  ['load cores', (row) => median(row.rounds.map((round) => round.loadCores)).toFixed(2)],
  ['lost', (row) => String(row.rounds.reduce((sum, round) => sum + round.lost, 0))],
  ['Sextant/it q/s', (row, own) => ratio(row, own, (round) => round.qps)],
  ['Sextant/it CPU', (row, own) => ratio(row, own, (round) => round.userUs + round.systemUs)],
]

/** Neighbours on a shared machine slow a whole round down, so each is compared within itself. */
function ratio(row, own, of) {
  return median(row.rounds.map((round, i) => of(own.rounds[i]) / of(round))).toFixed(2)
}

/** Rows are `{ name, residentMib, rounds }`; one of them is Sextant's. Prints Markdown. */
export function printTable(rows) {
  const own = rows.find((row) => row.name === 'Sextant')
  const lines = [
    ['server', ...COLUMNS.map(([title]) => title)],
    ...rows.map((row) => [row.name, ...COLUMNS.map(([, cell]) => cell(row, own))]),
  ]
  const widths = lines[0].map((_, i) => Math.max(...lines.map((line) => line[i].length)))
  const print = (cells) => console.log(`| ${cells.join(' | ')} |`)
  const pad = (line) =>
    line.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i])))
  print(pad(lines[0]))
  print(widths.map((width, i) => (i === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)))
  for (const line of lines.slice(1)) print(pad(line))
}
