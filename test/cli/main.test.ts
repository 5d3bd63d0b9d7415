import t from 'tap'
import { root, runSextant } from '../support/server.ts'

const COMMANDS =
  'the commands are serve, check, geo, what-if, operator, node, fqdn, query, explain, status, drain, undrain, drains, demo, help'

const EXPLAIN_USAGE =
  'usage: sextant explain NAME [TYPE] --client ADDR | --subnet CIDR [@SERVER] [-conf FILE] [--records FILE] [--seed N] [-o json]'

const CASES: readonly { args: readonly string[]; code: number; out?: RegExp; error?: string }[] = [
  { args: ['foo'], code: 1, error: `"foo" is not a command: ${COMMANDS}` },
  { args: ['chekc'], code: 1, error: `"chekc" is not a command: ${COMMANDS}; did you mean check?` },
  { args: ['Serve'], code: 1, error: `"Serve" is not a command: ${COMMANDS}; did you mean serve?` },
  { args: ['foo', '-conf', 'x'], code: 1, error: `"foo" is not a command: ${COMMANDS}` },
  { args: [''], code: 1, error: `"" is not a command: ${COMMANDS}` },
  { args: ['a\nb'], code: 1, error: `"a\\nb" is not a command: ${COMMANDS}` },
  {
    args: ['version'],
    code: 1,
    error: `"version" is not a command: ${COMMANDS}; to print the version, run \`sextant -version\``,
  },
  { args: ['-foo'], code: 1, error: 'flag provided but not defined: -foo' },
  { args: ['serve', 'foo'], code: 1, error: 'extra command line arguments: [foo]' },
  { args: ['check', 'foo'], code: 1, error: 'extra command line arguments: [foo]' },
  { args: ['explain'], code: 1, error: EXPLAIN_USAGE },
  {
    args: ['explain', 'a.example', '--client', '1.2.3'],
    code: 1,
    error: 'invalid client address: "1.2.3"',
  },
  {
    args: ['explain', 'a.example'],
    code: 1,
    error:
      'a client is missing: add --client ADDR (source address) or --subnet CIDR (client subnet)',
  },
  {
    args: ['explain', 'a.example', 'NOTYPE', '--client', '::1'],
    code: 1,
    error: 'unknown record type: "NOTYPE"',
  },
  {
    args: ['explain', 'a.example', '--client', '::1', '--seed', 'x'],
    code: 1,
    error: '--seed is not a number: "x"',
  },
  {
    args: ['explain', 'a.example', '--client', '::1', '--seed', '4294967296'],
    code: 1,
    error: 'the seed must be from 0 to 4294967295, got 4294967296',
  },
  { args: ['-version'], code: 0, out: /^Sextant-\d+\.\d+\.\d+$/m },
  { args: ['serve', '--version'], code: 0, out: /^Sextant-\d+\.\d+\.\d+$/m },
  { args: ['help'], code: 0, out: /^ {2}sextant check -conf FILE/m },
  { args: ['check', '-h'], code: 0, out: /^ {2}sextant check -conf FILE/ },
  {
    args: ['what-if', '--help'],
    code: 0,
    out: /^ {2}sextant what-if [\s\S]*--max-share[\s\S]*as JSON\n$/,
  },
  {
    args: ['help', 'drain'],
    code: 0,
    out: /^ {2}sextant drain SELECTOR(?![\s\S]*sextant undrain)/,
  },
  { args: ['fqdn', '-h'], code: 0, out: /^ {2}sextant fqdn cache list[\s\S]*sextant fqdn names/ },
  { args: ['help', 'foo'], code: 0, out: /^Sextant is /m },
  { args: ['demo', '-h'], code: 0, out: /^ {2}sextant demo .*\n$/ },
]

for (const { args, code, out, error } of CASES) {
  t.test(`sextant ${JSON.stringify(args)}`, async (t) => {
    const got = await runSextant(root, args)
    t.equal(got.code, code)
    if (out === undefined) t.equal(got.stdout, '')
    else t.match(got.stdout, out)
    t.equal(got.stderr, error === undefined ? '' : `${error}\n`)
  })
}
