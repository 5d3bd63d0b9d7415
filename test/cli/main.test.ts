import t from 'tap'
import { isServer } from '../../src/cli/main.ts'
import { root, runSextant } from '../support/server.ts'

const COMMAND_LIST =
  'the commands are serve, check, geo, what-if, import, operator, webhook, node, fqdn, query, explain, status, peers, health, drain, undrain, drains, keys, demo, kubectl, completion, help'

const EXPLAIN_USAGE =
  'usage: sextant explain NAME [TYPE] --client ADDR | --subnet CIDR [@SERVER] [-conf FILE] [--records FILE] [--seed N] [-o FORMAT]'

const CASES: readonly { args: readonly string[]; code: number; out?: RegExp; error?: string }[] = [
  { args: ['foo'], code: 1, error: `"foo" is not a command: ${COMMAND_LIST}` },
  {
    args: ['chekc'],
    code: 1,
    error: `"chekc" is not a command: ${COMMAND_LIST}; did you mean check?`,
  },
  {
    args: ['Serve'],
    code: 1,
    error: `"Serve" is not a command: ${COMMAND_LIST}; did you mean serve?`,
  },
  { args: ['foo', '-h'], code: 1, error: `"foo" is not a command: ${COMMAND_LIST}` },
  { args: ['foo', '-conf', 'x'], code: 1, error: `"foo" is not a command: ${COMMAND_LIST}` },
  { args: [''], code: 1, error: `"" is not a command: ${COMMAND_LIST}` },
  { args: ['a\nb'], code: 1, error: `"a\\nb" is not a command: ${COMMAND_LIST}` },
  {
    args: ['version'],
    code: 1,
    error: `"version" is not a command: ${COMMAND_LIST}; to print the version, run \`sextant -version\``,
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
  { args: ['help'], code: 0, out: /^Sextant is [\s\S]*^ {2}sextant check {7}validate/m },
  { args: ['-h'], code: 0, out: /^Sextant is /m },
  { args: ['help', '-h'], code: 0, out: /^Sextant is /m },
  {
    args: ['help', 'chekc'],
    code: 1,
    error: `"chekc" is not a command: ${COMMAND_LIST}; did you mean check?`,
  },
  {
    args: ['completion', 'fis'],
    code: 1,
    error: 'use: sextant completion bash|zsh|fish; did you mean fish?',
  },
  {
    args: ['fqdn', 'cache', 'lst'],
    code: 1,
    error:
      'use: sextant fqdn cache list [-e ID] [-p PATTERN] [-s SOURCE] [-o FORMAT], sextant fqdn cache clean [-f] [-p PATTERN], sextant fqdn names [-o FORMAT]; did you mean cache list?',
  },
  { args: ['completion'], code: 1, error: 'use: sextant completion bash|zsh|fish' },
  { args: ['completion', 'bash'], code: 0, out: /^complete -F _sextant sextant$/m },
  { args: ['serve', '-h'], code: 0, out: /^ {2}sextant serve [\s\S]*-dns\.port N, -p N / },
  {
    args: ['operator', '--site', 'a', '-h'],
    code: 0,
    out: /^ {2}sextant operator [\s\S]*keep\s+24h/,
  },
  {
    args: ['help', 'drain'],
    code: 0,
    out: /^ {2}sextant drain SELECTOR(?![\s\S]*sextant undrain)/,
  },
  {
    args: ['fqdn', '--help'],
    code: 0,
    out: /^ {2}sextant fqdn cache list[\s\S]*sextant fqdn names/,
  },
  {
    args: ['demo', '-h'],
    code: 0,
    out: /^ {2}sextant demo\n\n.*\n\n +-log-format FORMAT.*\n$/,
  },
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

t.test('all but servers wait until their output is read', async (t) => {
  const servers = [['serve'], ['operator'], ['node'], ['demo'], [], ['-conf', 'x'], ['help']]
  for (const argv of servers) t.equal(isServer(argv), true, argv.join(' '))
  for (const name of [
    'check',
    'geo',
    'what-if',
    'import',
    'fqdn',
    'query',
    'explain',
    'status',
    'drains',
  ])
    t.equal(isServer([name]), false, name)
})
