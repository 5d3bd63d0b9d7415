import { join } from 'node:path'
import t from 'tap'
import { InputError } from '../../../src/base/errors.ts'
import { parseCorefile } from '../../../src/corefile/parser.ts'
import { loadDirectives } from '../../../src/plugins/order.ts'
import { declaredNames } from '../../../src/plugins/plugin/declared.ts'
import { loadDeclared } from '../../../src/plugins/plugin/load.ts'
import { declaringBeside } from '../../../src/plugins/plugin/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'

t.test('lines that are refused', async (t) => {
  const table: [string, RegExp][] = [
    ['plugin motd', /Corefile:1 - Error during parsing: Wrong argument count/],
    ['plugin motd a-package before', /expect before DIRECTIVE or after DIRECTIVE, not before/],
    ['plugin motd a-package above cache', /expect before DIRECTIVE or .*, not above cache/],
    ['plugin motd a-package before cashe', /unknown directive 'cashe'; did you mean cache\?/],
    ['plugin cache a-package', /the name cache is taken: choose another one/],
    ['plugin motd a-package\nplugin motd b', /Corefile:2.*the name motd is taken/],
    ['plugin Motd a-package', /"Motd" is not a name of a directive: use a-z, 0-9 and _/],
    ['plugin motd a-package {\n x\n}', /unknown property/],
    ...['../motd', '/motd', './motd', 'a/b', '@a/../b', 'node:fs', 'data:,', '.hidden', 'A'].map(
      (source): [string, RegExp] => [`plugin motd ${source}`, /is not a name of an npm package/],
    ),
  ]
  const plugin = declaringBeside(['cache', 'hosts'])
  for (const [line, error] of table) t.match(setupError(plugin, line), error, line)
  for (const line of [
    'plugin motd a-package',
    'plugin motd @scope/a.package after cache',
    'plugin motd a\nplugin dotm b before motd',
  ]) {
    t.equal(setupError(plugin, line), '', line)
  }
})

const ABOUT = { name: 'a', sextant: { apiVersion: 1 } }
const about = (more: object) => JSON.stringify({ ...ABOUT, type: 'module', ...more })
const GOOD = 'export default (_, name) => ({ setup: () => ({ note: () => name }) })'

/** Loads `a`, which the Corefile in `directory` declares; returns what its setup throws. */
async function load(directory: string, source: string, importMsMax?: number): Promise<string> {
  const text = `.:53 {\n plugin a ${source}\n a\n}\n`
  const blocks = parseCorefile(text, 'Corefile', {
    env: {},
    directiveNames: ['plugin'],
    declaredNames,
  })
  const [directive] = await loadDeclared(blocks, join(directory, 'conf', 'Corefile'), importMsMax)
  try {
    new SetUp(directive!, 'a')
    return ''
  } catch (error) {
    if (error instanceof InputError) return error.print()
    throw error
  }
}

t.test('a declaration does not replace a directive', async (t) => {
  const packages = { a: { 'package.json': about({}), 'index.js': GOOD } }
  const directory = t.testdir({ node_modules: packages })
  const blocks = parseCorefile('.:53 {\n plugin plugin a\n}\n', 'Corefile', { env: {} })
  const directives = await loadDirectives(blocks, join(directory, 'Corefile'))
  const plugin = new Map(directives.map((one) => [one.name, one])).get('plugin')!
  t.match(setupError(plugin, 'plugin plugin a'), /the name plugin is taken/)
})

t.test('packages', async (t) => {
  const packages: Record<string, { files: Record<string, string>; error: RegExp | '' }> = {
    good: { files: { 'package.json': about({}), 'index.js': GOOD }, error: '' },
    main: { files: { 'package.json': about({ main: 'b.js' }), 'b.js': GOOD }, error: '' },
    nested: {
      files: {
        'package.json': about({ exports: { '.': { types: './x', node: { import: './b.js' } } } }),
        'b.js': GOOD,
      },
      error: '',
    },
    broken: { files: { 'package.json': '{' }, error: /has an invalid package\.json in .*broken$/ },
    other: {
      files: { 'package.json': '{}', 'index.js': GOOD },
      error: /is not a plug-in: its package\.json has no "sextant": \{ "apiVersion": 1 \}$/,
    },
    newer: {
      files: { 'package.json': about({ sextant: { apiVersion: 2 } }), 'index.js': 'throw 1' },
      error: /is for version 2 of the plug-in API, and this Sextant has version 1$/,
    },
    empty: {
      files: { 'package.json': about({}) },
      error: /has no module: "exports" or "main" of its pa/,
    },
    outside: {
      files: { 'package.json': about({ exports: './../good/index.js' }) },
      error: / of its package\.json must name a file in its folder$/,
    },
    throwing: {
      files: { 'package.json': about({}), 'index.js': 'throw new Error("no luck")' },
      error: /cannot be loaded: no luck; restart Sextant after you correct it$/,
    },
    named: {
      files: { 'package.json': about({}), 'index.js': 'export const motd = () => {}' },
      error: /is not a plug-in: the default export of .*index\.js must be a function$/,
    },
    void: {
      files: { 'package.json': about({}), 'index.js': 'export default () => {}' },
      error: /its default export must return an object with a function setup$/,
    },
    failing: {
      files: { 'package.json': about({}), 'index.js': 'export default () => { null.x }' },
      error: /failed: its default export threw Cannot read properties of null/,
    },
    unset: {
      files: {
        'package.json': about({}),
        'index.js': 'export default () => ({ setup() { null.x } })',
      },
      error: /failed: its setup threw Cannot read properties of null/,
    },
    late: {
      files: {
        'package.json': about({}),
        'index.js': 'export default () => ({ async setup() {} })',
      },
      error: /its setup must return an object or .*, not a promise;/,
    },
    handless: {
      files: {
        'package.json': about({}),
        'index.js': 'export default () => ({ setup: () => [{ handler: 1 }] })',
      },
      error: /its setup must return an object .*a handler is a function$/,
    },
    listing: {
      files: {
        'package.json': about({}),
        'index.js': 'export default () => ({ setup: () => [null] })',
      },
      error: /its setup must return an object/,
    },
    symbolic: {
      files: { 'package.json': about({}), 'index.js': 'throw Symbol("no luck")' },
      error: /cannot be loaded: Symbol\(no luck\);/,
    },
    endless: {
      files: { 'package.json': about({}), 'index.js': 'await new Promise(() => {})' },
      error: /cannot be loaded: its module did not load within 0\.05 s;/,
    },
    refusing: {
      files: {
        'package.json': about({}),
        'index.js': 'export default () => ({ setup(c) { throw c.dispenser.error("too bad") } })',
      },
      error: /too bad$/,
    },
  }
  const folders = Object.entries(packages).map(([name, { files }]) => [name, files])
  const directory = t.testdir({ conf: { node_modules: Object.fromEntries(folders) } })
  for (const [name, { error }] of Object.entries(packages)) {
    const found = await load(directory, name, name === 'endless' ? 50 : undefined)
    if (error === '') t.equal(found, '', name)
    else t.match(found, error, name)
    // The error of a setup has the place of its own line.
    if (error !== '' && name !== 'refusing') t.match(found, /^Corefile:2: npm package /, name)
  }
  const missing = await load(directory, 'absent')
  t.match(missing, /^Corefile:2: npm package absent is not installed: run npm install absent in \//)
})

t.test('a package is found in a folder above that of the Corefile', async (t) => {
  const above = { 'package.json': about({}), 'index.js': GOOD }
  t.equal(await load(t.testdir({ node_modules: { good: above }, conf: {} }), 'good'), '')
})
