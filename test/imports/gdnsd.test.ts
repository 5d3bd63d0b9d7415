import fc from 'fast-check'
import t from 'tap'
import { InputError } from '../../src/base/errors.ts'
import { GDNSD } from '../../src/imports/gdnsd/gdnsd.ts'
import { endpointLines, importFiles, refusal } from './import-files.ts'

const HEAD = '$TTL 60\n@ SOA a b 1 2 3 4 5\n@ NS a.example.net.\n'

/** Imports `www`, a record of the resource `r` of a plugin. */
function importResource(plugin: string, resource: string, reference = `${plugin}!r`) {
  const config = `plugins => { ${plugin} => { ${resource} } }`
  return importFiles(GDNSD, { config, 'example.com': `${HEAD}www 300/30 DYNA ${reference}\n` })
}

t.test('files that are no configuration', async (t) => {
  const zone = { 'example.com': HEAD }
  const table: readonly [files: Record<string, string>, error: RegExp][] = [
    [{ config: 'plugins => { }' }, /^config: add the zone files of gdnsd behind it$/],
    [{ config: '', ...zone }, /^config:1: has none of options, plugins and service_types/],
    [{ config: HEAD, ...zone }, /^config:1: "\$TTL" has no value: write NAME => VALUE$/],
    [{ config: 'plugins => {\n a => 1', ...zone }, /^config:1: the hash has no \}$/],
    [{ config: 'plugins => {\n a => [1', ...zone }, /^config:2: the list has no \]$/],
    [
      { config: 'plugins => {\n a => ] }', ...zone },
      /^config:2: unexpected "\]" in place of a value/,
    ],
    [{ config: 'plugins =>', ...zone }, /^config:1: a value is missing at the end$/],
    [{ config: 'plugins => { }\n}', ...zone }, /^config:2: unexpected "\}"$/],
    [{ config: 'plugins => { a => 1\na => 2 }', ...zone }, /^config:2: "a" is defined twice$/],
    [{ config: 'plugins => { a => $include{x} }', ...zone }, /^config:1: unexpected "\$include/],
    [{ config: '$include{x}', ...zone }, /^config:1: \$include is not supported/],
    [{ config: `plugins => ${'{ a => '.repeat(40)}`, ...zone }, /^config:1: nested too deep$/],
    [{ config: 'plugins => { }', 'a..b': HEAD }, /^a\.\.b:1: the name of the file is not a zone/],
    [{ config: 'plugins => { }', 'example.com': 'www A 192.0.2.1' }, /^example\.com:1: .*no SOA/],
    [
      { config: 'plugins => { }', 'example.com': `${HEAD}a MX 1 b.@Z` },
      /^example\.com:4: write the names/,
    ],
  ]
  for (const [files, error] of table) {
    t.match(
      refusal(() => importFiles(GDNSD, files)),
      error,
      JSON.stringify(files),
    )
  }
})

t.test('resources that are not imported', async (t) => {
  const table: readonly [plugin: string, resource: string, reference: string, note: RegExp][] = [
    ['null', 'x => 1', 'null!r', /: null!r not imported: no resource null!r$/],
    ['static', 'r => a', 'static', /: static not imported: write PLUGIN!RESOURCE$/],
    ['__proto__', 'r => a', 'constructor!r', /no resource constructor!r$/],
    ['reflect', 'r => { a => 1 }', 'reflect!r', /plugin reflect has no equivalent \(config:1\)$/],
    ['multifo', 'r => { }', 'multifo!r', /the resource is empty \(config:1\)$/],
    ['multifo', 'r => { a => 192.0.2.300 }', 'multifo!r', /./],
    [
      'weighted',
      'r => { a => 192.0.2.1 }',
      'weighted!r',
      /a member of weighted is \[TARGET, WEIGHT\]/,
    ],
    ['weighted', 'r => { a => [192.0.2.1, x] }', 'weighted!r', /a member of weighted is /],
    ['simplefo', 'r => { primary => 192.0.2.1 }', 'simplefo!r', /r has no secondary/],
    ['metafo', 'resources => { r => { datacenters => a } }', 'metafo!r', /dcmap has no a/],
    ['metafo', 'resources => { r => { } }', 'metafo!r/x', /no datacenter x/],
    ['geoip', 'resources => { r => { map => m } }', 'geoip!r', /no map "m"/],
    ['geoip', 'resources => { r => 1 }', 'geoip!r', /no resource geoip!r/],
  ]
  for (const [plugin, resource, reference, note] of table) {
    const { documents, notes } = importResource(plugin, resource, reference)
    if (!resource.includes('300')) t.strictSame(documents, [], resource)
    t.ok(
      notes.some((one) => note.test(one)),
      `${resource}: ${notes.join(' | ')}`,
    )
  }
})

t.test('the syntax of the configuration', async (t) => {
  const want = ['www.example.com 300 A 192.0.2.1+192.0.2.2']
  for (const resource of [
    'r => { a => 192.0.2.1, b => 192.0.2.2 }',
    'r = { a = 192.0.2.1 b = 192.0.2.2 }',
    'r => { "a" => "192.0.2.1", # comment => }\n b => 192.0.2.2 }',
    'r => [192.0.2.1 192.0.2.2]',
    'r => { addrs_v4 => [ 192.0.2.1, 192.0.2.2, ] }',
  ]) {
    t.strictSame(endpointLines(importResource('multifo', resource)), want, resource)
  }
})

t.test('places of records stay as they are', async (t) => {
  const zone = `${HEAD}\n; DYNA x!y\na 60 DYNA (\n  static!r )\nb 60/30 IN DYNA static!none\n`
  const imported = importFiles(GDNSD, {
    config: 'plugins => { static => { r => 192.0.2.1 } }',
    'example.com': zone,
  })
  t.strictSame(endpointLines(imported), ['a.example.com 60 A 192.0.2.1'])
  t.match(imported.notes.at(-1), /^example\.com:8: static!none not imported/)
})

t.test('any configuration is imported, or refused with its place', async () => {
  const word = fc.constantFrom(
    ...[
      'plugins',
      '=>',
      '{',
      '}',
      '[',
      ']',
      'geoip',
      'maps',
      'resources',
      'r',
      'm',
      'map',
      'dcmap',
      'nets',
    ],
    ...[
      'datacenters',
      'default',
      'EU',
      'DE',
      '192.0.2.0/24',
      '192.0.2.1',
      'auto',
      ',',
      '"',
      '\\',
      '#',
      '\n',
    ],
  )
  const tree = fc.letrec<{ value: string }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      word.filter((one) => /^\w/.test(one)),
      fc
        .array(
          fc.tuple(
            word.filter((one) => /^\w/.test(one)),
            tie('value'),
          ),
          { maxLength: 4 },
        )
        .map((pairs) => {
          return `{ ${[...new Map(pairs)].map(([key, value]) => `${key} => ${value}`).join(' ')} }`
        }),
    ),
  })).value
  const words = fc.array(word, { maxLength: 40 }).map((list) => list.join(' '))
  const geo = tree.map(
    (value) =>
      `plugins => { geoip => { maps => { m => ${value} } resources => { r => { map => m dcmap => ${value} } } } }`,
  )
  const run = (config: string): void => {
    try {
      importFiles(GDNSD, { config, 'example.com': `${HEAD}www 60 DYNA geoip!r\n` })
    } catch (error) {
      if (!(error instanceof InputError)) throw error
    }
  }
  fc.assert(fc.property(fc.oneof(words, geo), run), { numRuns: 300 })
})
