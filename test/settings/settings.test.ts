import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { STEERING_PROPERTIES } from '../../src/records/validate/ignored.ts'
import { PROBE_PROPERTIES } from '../../src/records/validate/probe-properties.ts'
import { SETTING_KEYS } from '../../src/records/validate/settings.ts'
import { root } from '../support/server.ts'
import { COLUMNS, type ColumnName, type Outcome } from './columns.ts'
import { REAL_TESTS } from './real-servers.ts'
import type { Row } from './row.ts'
import { ROWS } from './rows.ts'
import { NOTHING } from './sketches.ts'

// Long: it compares hundreds of pairs of sites.

const PAGE = 'docs/reference/settings.md'
/** Set = the tables of the page are written, not compared. */
const WRITES = process.env.SEXTANT_WRITE_PAGE !== undefined

const HEADINGS: { readonly [group in Row['group']]: string } = {
  endpoint: 'field or property of an endpoint',
  annotation: 'annotation `sextant.io/…`',
  health: 'health of an address',
  drain: 'drain by',
  conflict: 'conflict of two records',
}

const NAMES = Object.keys(COLUMNS) as ColumnName[]
/** Messages about records that contradict each other. */
const CONFLICT = /(EndpointConflict|RecordConflict): |: the first (is served|applies); /

/** `log`, `Corefile`, or the type of a condition. */
function sourceOf(message: string): string {
  const [, kind = '', type = ''] = /^\w+: (\w+): (?:\S+ (\w+)=)?/.exec(message)!
  return kind === 'condition' ? type : kind
}

/** Where the messages are that say this; '' = nowhere. */
function sourcesOf({ messages }: Outcome, says: (source: string) => RegExp | undefined): string {
  const found = messages.filter((message) => says(sourceOf(message))?.test(message)).map(sourceOf)
  const print = (source: string): string =>
    /^[A-Z]/.test(source) && source !== 'Corefile' ? `\`${source}\`` : source
  return [...new Set(found)].map(print).sort().join(', ')
}

/** What a cell says. Fails if something else is served than the row wants, without a visible reason. */
function decideCell(t: Test, row: Row, name: ColumnName, outcome: Outcome): string {
  const at = `${row.name}, ${name}`
  const { served = {}, says = row.says } = row.but?.[name] ?? {}
  const wanted = outcome.served.size === 1 ? (row.alone ?? row.want) : row.want
  for (const [site, text] of outcome.served) {
    const want = served[site as 'there' | 'here'] ?? wanted
    t.equal(text, want, `${at}: served at ${site}`)
  }
  const words = row.words?.[name]
  const disputed = outcome.messages.filter((message) => CONFLICT.test(message))
  for (const message of disputed) {
    const right = (words === undefined ? row.says : words[sourceOf(message)]) ?? NOTHING
    t.match(message, right, `${at}: no false conflict`)
  }
  if (says === undefined) return 'works'
  if (says === NOTHING) return 'no conflict'
  const sources = sourcesOf(outcome, (source) => (words === undefined ? says : words[source]))
  if (words !== undefined) t.equal(sources.split(', ').length, Object.keys(words).length, at)
  t.not(sources, '', `${at}: ${says} is in\n${outcome.messages.join('\n')}`)
  const isDifferent = [...outcome.served.values()].some((text) => text !== wanted)
  t.ok(isDifferent || row.says !== undefined, `${at}: a reason, and yet it works`)
  return says === row.says ? sources : `no: ${sources}`
}

/** The rows of one group as a table. Rows with the same cells are one row. */
function print(rows: readonly (readonly string[])[], heading: string): string {
  const names = new Map<string, string[]>()
  for (const [name = '', ...cells] of rows) {
    const key = cells.join(' | ')
    names.set(key, [...(names.get(key) ?? []), name])
  }
  const joined = [...names].map(([cells, list]) => [list.join('; '), cells])
  const head = [heading, ...NAMES]
  const lines = [head, head.map(() => '---'), ...joined].map((cells) => `| ${cells.join(' | ')} |`)
  return lines.join('\n').replaceAll('| --- |', '|---|').replaceAll(' --- |', '---|')
}

t.test(
  'each setting and state works in each column, or a visible reason says why not',
  async (t) => {
    const tables: string[] = []
    for (const [group, heading] of Object.entries(HEADINGS)) {
      const rows: string[][] = []
      for (const row of ROWS.filter((one) => one.group === group)) {
        const cells: string[] = []
        for (const name of NAMES) cells.push(decideCell(t, row, name, await COLUMNS[name](row)))
        rows.push([row.name, ...cells])
      }
      tables.push(print(rows, heading))
    }
    const path = join(root, PAGE)
    const page = readFileSync(path, 'utf8')
    // The first table of the page describes the columns.
    let at = -1
    const printed = page.replaceAll(/^\|[\s\S]*?(?=\n(?!\|))/gm, (table) => tables[at++] ?? table)
    if (WRITES) writeFileSync(path, printed)
    else t.equal(page, printed, `${PAGE} has these tables; SEXTANT_WRITE_PAGE=1 writes them`)
    t.equal(at, tables.length, 'one table for each group')
  },
)

t.test('some row of each column runs with real servers', async (t) => {
  const known = new Set(ROWS.map(({ name }) => name))
  for (const [column, tests] of Object.entries(REAL_TESTS)) {
    t.not(tests.length, 0, column)
    for (const { file, title, rows } of tests) {
      t.ok(readFileSync(join(root, file), 'utf8').includes(title), `${file}: ${title}`)
      for (const row of rows) t.ok(known.has(row), `${file}: ${row}`)
    }
  }
})

t.test('there is a row for each setting of a record', async (t) => {
  const names = ROWS.map(({ name }) => name).join()
  const settings = [...STEERING_PROPERTIES, ...PROBE_PROPERTIES, ...SETTING_KEYS]
  for (const name of settings) t.match(names, `\`${name}\``)
})
