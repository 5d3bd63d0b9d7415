// Makes the list of events and the tables of docs/reference/log-lines.md: those log calls of src, by area, that have a note on the page. A note
// is written by hand, as a row in any of the tables, and kept as long as the line exists.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Headings of the page, and the beginnings of the paths in src whose lines they list. The longest beginning counts. */
const AREAS = [
  [
    'Start, stop and reload',
    'cli server plugins/on plugins/reload plugins/ready plugins/health/setup',
  ],
  [
    'Faults of the program and the system',
    'base api plugins/admin plugins/dnstap plugins/errors plugins/proxyproto plugins/rrl plugins/shed plugins/trace',
  ],
  ['Zones from files', 'authority plugins/auto plugins/file plugins/hosts plugins/sign'],
  ['Keys and signatures', 'signing plugins/dnssec'],
  ['Zone transfers', 'plugins/secondary plugins/transfer'],
  [
    'Records and their sources',
    'publish sources webhook health/drain health/shift plugins/kuadrant plugins/geoip',
  ],
  ['Kubernetes', 'kube cluster-dns authority/cluster plugins/egressfirewall'],
  ['Peers and health', 'peering health plugins/health publish/peers'],
  ['Operator', 'operator cli/serve-operator cli/notify-port'],
  ['Controllers for egress policies', 'operator/egress egress ovsdb cli/egress-controllers'],
  ['Node agent', 'egress/agent egress/sinks/nft plugins/egress/'],
]

/** Calls of a logger. A text that is built elsewhere has its level in a comment before it. */
const CALL =
  /(?:\blog(?:ger)?\??\.(info|warning|error)\(|\/\* (info|warning|error) \*\/)\s*(`(?:[^`\\]|\\.)*`|'(?:[^'\\]|\\.)*')/gi
const ROW = /^\| (info|warning|error) \| (`{1,2})(.*?)\2 \| (?:(.*) )?\|$/gm
const EVENTS = /<!-- events -->[\s\S]*<!-- end of events -->/
/** The event of a call of a logger. */
const EVENT =
  /\blog(?:ger)?\??\.(?:debug|info|warning|error)\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*?,\s*'([a-z0-9-]+)'/gi
const TABLES = /<!-- lines -->[\s\S]*<!-- end of lines -->/

/** The text of a literal of the source, with `…` for parts that vary. */
function textOf(literal) {
  const body = literal.slice(1, -1).replaceAll('\\`', '`')
  let text = ''
  let depth = 0
  for (let i = 0; i < body.length; i++) {
    if (depth === 0 && body.startsWith('${', i)) {
      text += '…'
      depth = 1
      i++
    } else if (depth === 0) text += body[i]
    else if (body[i] === '{') depth++
    else if (body[i] === '}') depth--
  }
  return text.replaceAll(/…+/g, '…')
}

function areaOf(file) {
  let best = { heading: '', length: -1 }
  for (const [heading, beginnings] of AREAS) {
    for (const beginning of beginnings.split(' ')) {
      const fits = file.startsWith(beginning) && beginning.length > best.length
      if (fits) best = { heading, length: beginning.length }
    }
  }
  if (best.length === -1) throw new Error(`docs/log-lines.mjs: no area has src/${file}`)
  return best.heading
}

/** Lines by heading, each once, as `level text`. Texts such as `…: …`, which are any line, are left out. */
export function logLines(src) {
  const seen = new Set()
  const lines = new Map(AREAS.map(([heading]) => [heading, []]))
  for (const [file, source] of sources(src)) {
    for (const [, called, noted, literal] of source.matchAll(CALL)) {
      const text = textOf(literal)
      const line = `${(called ?? noted).toLowerCase()} ${text}`
      if (seen.has(line) || !/[a-z]{2}/i.test(text)) continue
      seen.add(line)
      lines.get(areaOf(file)).push(line)
    }
  }
  return lines
}

/** The events that calls in src name, in alphabetical order. */
export function logEvents(src) {
  const events = sources(src).flatMap(([, text]) =>
    [...text.matchAll(EVENT)].map(([, event]) => event),
  )
  return [...new Set(events)].sort()
}

function sources(src) {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
  const names = files.filter((name) => name.endsWith('.ts')).sort()
  return names.map((name) => [name, readFileSync(join(src, name), 'utf8')])
}

function wrap(text) {
  return text.replace(/(.{1,118})(?: |$)/g, '$1\n').trimEnd()
}

/** The page with its tables made anew: without rows of lines that no longer exist. */
export function generateLogLines(src, page) {
  const notes = new Map()
  for (const [, level, , text, note] of page.matchAll(ROW)) notes.set(`${level} ${text}`, note)
  const tables = [...logLines(src)].map(([heading, lines]) => {
    const rows = lines.flatMap((line) => {
      const note = notes.get(line)
      if (!note) return []
      const [level, text] = [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)]
      const quote = text.includes('`') ? '``' : '`'
      return [`| ${level} | ${quote}${text}${quote} | ${note} |`]
    })
    return [
      `## ${heading}`,
      '',
      '| level | line | meaning, or what to do |',
      '|---|---|---|',
      ...rows,
      '',
    ].join('\n')
  })
  const events = logEvents(src).map((name) => `\`${name}\``)
  const list = `<!-- events -->\n\n${wrap(events.join(', '))}\n\n<!-- end of events -->`
  return page
    .replace(EVENTS, () => list)
    .replace(TABLES, () => `<!-- lines -->\n\n${tables.join('\n')}\n<!-- end of lines -->`)
}
