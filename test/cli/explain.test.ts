import { join } from 'node:path'
import t, { type Test } from 'tap'
import { runExplain } from '../../src/cli/explain.ts'
import { recordManifest } from '../support/manifest.ts'
import { recordOutput } from '../support/recorded-output.ts'

const CONF = 'k.example.com {\n root {DIR}\n kuadrant {\n  manifests records\n }\n}\n'
const BAD = recordManifest('bad', '999', 'bad.k.example.com')
const LIST = { apiVersion: 'v1', kind: 'List' }

function stage(t: Test) {
  const directory = t.testdir({
    Corefile: CONF.replace('{DIR}', t.testdirName),
    cluster: 'k.example.com {\n kuadrant\n}\n',
    faulty: CONF.replace('manifests records', 'manifests broken').replace('{DIR}', t.testdirName),
    records: { 'a.yaml': recordManifest('a', '192.0.2.1') },
    broken: { 'a.yaml': recordManifest('a', '192.0.2.1'), 'bad.yaml': BAD, 'c.yaml': 'a: [' },
    'dump.yaml': `${recordManifest('b', '192.0.2.2')}`,
    'empty.json': JSON.stringify({ ...LIST, items: [] }),
    blank: '\n',
  })
  return async (conf: string, ...args: string[]) => {
    const { output, printed, errors } = recordOutput(directory)
    const given = args.map((arg) => arg.replace('{DIR}', directory))
    const code = await runExplain([...given, '-conf', join(directory, conf)], output)
    return { code, text: printed.join('\n'), errors }
  }
}

const CLIENT = ['--client', '192.0.2.99'] as const

t.test('records of a dump replace those of the Corefile', async (t) => {
  const run = stage(t)
  const dump = ['--records', '{DIR}/dump.yaml'] as const
  for (const conf of ['Corefile', 'cluster']) {
    const { code, text, errors } = await run(conf, 'b.k.example.com', ...CLIENT, ...dump)
    t.equal(code, 0, errors.join('\n'))
    t.match(text, /\* endpoint 1: 192\.0\.2\.2; default\/b \(.*dump\.yaml:\d+\)/)
  }
  const none = await run('cluster', 'b.k.example.com', ...CLIENT, '--records', '{DIR}/empty.json')
  t.match(none, { code: 0, text: /NXDOMAIN/ })
})

t.test('faults of records are printed beside the explanation', async (t) => {
  const run = stage(t)
  const bad = await run('faulty', 'bad.k.example.com', ...CLIENT)
  t.equal(bad.code, 1)
  t.match(bad.errors, [/^broken\/bad\.yaml:\d+: default\/bad is refused/, /^broken\/c\.yaml:\d+: /])
  t.match(bad.text, 'bad.k.example.com. does not exist')
  const good = await run('faulty', 'a.k.example.com', ...CLIENT)
  t.match(good, { code: 1, text: /served: 192\.0\.2\.1/ })
})

t.test('a name that no server block serves: the zones that it could have meant', async (t) => {
  const { code, text } = await stage(t)('Corefile', 'a.k.example.net', ...CLIENT)
  t.equal(code, 0)
  t.match(text, /^end: no server block serves the name; the zones are: k\.example\.com\.$/m)
})

const A = 'a.k.example.com'
for (const [name, conf, args, want] of [
  ['no name', 'Corefile', [...CLIENT], /^usage: sextant explain NAME/],
  ['no client', 'Corefile', [A], /^a client is missing/],
  ['an invalid client', 'Corefile', [A, '--client', '300.1.1.1'], /^invalid client address/],
  ['an invalid subnet', 'Corefile', [A, '--subnet', '192.0.2.0/33'], /^invalid client subnet/],
  ['an invalid name', 'Corefile', ['a..b', ...CLIENT], /^invalid name: "a\.\.b"$/],
  ['an unknown type', 'Corefile', [A, 'FOO', ...CLIENT], /^unknown record type: "FOO"$/],
  ['an invalid seed', 'Corefile', [A, ...CLIENT, '--seed', 'x'], /^--seed is not a number/],
  [
    'an unknown output',
    'Corefile',
    [A, ...CLIENT, '-o', 'text'],
    /^invalid value text for -o: must be table/,
  ],
  ['no Corefile', 'nowhere', [A, ...CLIENT], /^cannot read Corefile/],
  ['records of a cluster', 'cluster', [A, ...CLIENT], /records of a cluster.*with --records/],
  ['no dump', 'Corefile', [A, ...CLIENT, '--records', '/none'], /^\/none: cannot be read/],
  ['a blank dump', 'Corefile', [A, ...CLIENT, '--records', '{DIR}/blank'], /blank: is empty$/],
  [
    'a dump and a server',
    'Corefile',
    [A, ...CLIENT, '@', '--records', 'x'],
    /^--records is not possible with @SERVER, .* remove one of them$/,
  ],
  [
    'a port of blocks and a server',
    'Corefile',
    [A, ...CLIENT, '@', '-dns.port', '5'],
    /^-dns\.port is not possible with @SERVER, .* remove one of them$/,
  ],
] as const) {
  t.test(`refused: ${name}`, async (t) => {
    const { code, text, errors } = await stage(t)(conf, ...args)
    t.match({ code, text, errors }, { code: 1, text: '', errors: [want] })
    t.equal(errors.length, 1)
  })
}
