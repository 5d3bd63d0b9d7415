import type { ServerStatus } from '../../base/telemetry/status.ts'
import { printable } from './client/shell/printable.ts'

/** A column: its title, and the text of a row. */
type Column<T> = readonly [title: string, cell: (row: T) => string | number | null | undefined]

/** Most rows of a table: a server may have any number of zones. */
const ROWS_MAX = 1000

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Returns the page for browsers without JavaScript: the state of the server as tables. */
export function composePlainPage(status: ServerStatus): string {
  const { version, now, zones, endpoints, endpointsOmitted, peers, problems } = status
  const body = [
    table('Problems', problems, 0, [
      ['Object', ({ object, kind }) => object || kind],
      ['Place', ({ place }) => place],
      ['Reason', ({ reason }) => reason],
    ]),
    table('Zones', zones, 0, [
      ['Zone', ({ zone }) => zone],
      ['Source', ({ directive, source }) => `${directive}: ${source}`],
      ['Serial', ({ serial }) => serial],
      ['Records', ({ records }) => records],
      ['Served', ({ endpoints }) => endpoints?.served],
      ['Down', ({ endpoints }) => endpoints?.down],
      ['Drained', ({ endpoints }) => endpoints?.drained],
    ]),
    table('Endpoints that are not served in full', endpoints, endpointsOmitted, [
      ['Name', ({ name, type }) => `${name} ${type}`],
      ['Endpoint', ({ setIdentifier }) => setIdentifier],
      ['Targets', ({ targets }) => targets.join(', ')],
      ['State', ({ state }) => state],
      ['Detail', ({ detail }) => detail],
    ]),
    table('Peers', peers, 0, [
      ['Peer', ({ peer }) => peer],
      ['Sites', ({ site }) => site],
      ['State', ({ isUp, error }) => (isUp ? 'up' : `down: ${error}`)],
      ['Age in seconds', ({ ageSeconds }) => ageSeconds],
    ]),
  ]
  return composePage(
    `<p>Version ${escapeHtml(version)}, state of ${escapeHtml(now)}. Reload the page for a newer one.</p>\n${body.join('\n')}`,
  )
}

/** Returns a page that says why it has no data. */
export function composePlainRefusal(reason: string): string {
  return composePage(`<p>${escapeHtml(reason)}</p>`)
}

function composePage(body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Sextant</title>
<link rel="icon" href="icon.svg">
<link rel="stylesheet" href="console.css">
</head>
<body>
<header><strong class="product">Sextant</strong></header>
<main>
<h1>State of the server</h1>
${body}
</main>
</body>
</html>
`
}

/** `omitted`: number of rows that are not in `rows`. */
function table<T>(
  caption: string,
  rows: readonly T[],
  omitted: number,
  columns: readonly Column<T>[],
): string {
  const heads = columns.map(([title]) => `<th scope="col">${title}</th>`).join('')
  const lines = rows.slice(0, ROWS_MAX).map((row) => {
    const [first = '', ...others] = columns.map(([, cell]) => escapeHtml(String(cell(row) ?? '-')))
    return `<tr><th scope="row">${first}</th>${others.map((text) => `<td>${text}</td>`).join('')}</tr>`
  })
  const left = Math.max(0, rows.length - ROWS_MAX) + omitted
  const note = rows.length === 0 ? 'None.' : left > 0 ? `${left} more are not shown.` : ''
  return `<section class="table" tabindex="0" aria-label="${caption}">
<table>
<caption>${caption}</caption>
<thead><tr>${heads}</tr></thead>
<tbody>
${lines.join('\n')}
</tbody>
</table>
${note === '' ? '' : `<p class="empty">${note}</p>`}
</section>`
}

function escapeHtml(text: string): string {
  return printable(text).replace(/[&<>"']/g, (one) => ESCAPES[one]!)
}
