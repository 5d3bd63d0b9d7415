import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { DIRECTIVE_NAMES, SUPPORTED_NAMES } from '../../src/plugins/order.ts'
import { root } from '../support/server.ts'

const PAGE = 'docs/reference/compatibility.md'
const ROW =
  /^\| (?:\[([\w-]+)\]\(\S+\/plugins\/([\w-]+)\/README\.md\)|(\w+)) \| (supported|differs|not supported)(?:: [^|]+)? \|/gm

/** Directives that another one's page describes. */
const PAGES: ReadonlyMap<string, string> = new Map([['ocp_dnsnameresolver', 'egressfirewall']])

t.test('the page has the state of every directive, in the order of the chain', async (t) => {
  const page = readFileSync(join(root, PAGE), 'utf8')
  const rows = [...page.matchAll(ROW)].map(([, linked, folder, plain = '', state = '']) => {
    t.equal(folder, PAGES.get(linked ?? '') ?? linked, `the link of ${linked ?? plain}`)
    return { name: linked ?? plain, hasLink: linked !== undefined, state }
  })
  const names = rows.map(({ name }) => name)
  t.strictSame(names, DIRECTIVE_NAMES)
  for (const { name, hasLink, state } of rows) {
    const isSupported = SUPPORTED_NAMES.includes(name)
    t.equal(state !== 'not supported', isSupported, `the state of ${name}`)
    t.equal(hasLink, isSupported, `the link of ${name}`)
  }
})
