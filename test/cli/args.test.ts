import t from 'tap'
import { scanCheckArgs } from '../../src/cli/check-args.ts'
import { scanServeArgs } from '../../src/cli/serve-args.ts'

const DEFAULTS = {
  conf: undefined,
  dnsPort: 53,
  pidfile: undefined,
  cookieSecrets: undefined,
  maxQueryAgeMs: 200,
  plugins: false,
  quiet: false,
  version: false,
  examples: false,
  takesOver: false,
}

const serves: readonly { name: string; given: readonly string[]; want: object | string }[] = [
  { name: 'nothing', given: [], want: {} },
  { name: 'one dash', given: ['-conf', 'a'], want: { conf: 'a' } },
  { name: 'two dashes', given: ['--conf', 'a'], want: { conf: 'a' } },
  { name: 'an equals sign', given: ['-conf=a=b'], want: { conf: 'a=b' } },
  { name: 'an empty value is none', given: ['-conf='], want: {} },
  { name: '-dns.port', given: ['-dns.port', '1053'], want: { dnsPort: 1053 } },
  {
    name: '-p is the same flag: the last one counts',
    given: ['-dns.port=1', '-p=2'],
    want: { dnsPort: 2 },
  },
  { name: '-p before -dns.port', given: ['-p', '2', '-dns.port', '1'], want: { dnsPort: 1 } },
  {
    name: 'flags that stand alone',
    given: ['-plugins', '-quiet', '-version', '-examples', '-takeover', '-windows-service'],
    want: { plugins: true, quiet: true, version: true, examples: true, takesOver: true },
  },
  { name: 'a flag switched off', given: ['-quiet', '-quiet=false'], want: {} },
  { name: 'a flag switched on in words', given: ['-quiet=T'], want: { quiet: true } },
  {
    name: 'a flag that is neither on nor off',
    given: ['-quiet=maybe'],
    want: 'invalid boolean value "maybe" for -quiet: parse error',
  },
  { name: '-cookie-secrets', given: ['-cookie-secrets', 's'], want: { cookieSecrets: 's' } },
  { name: '-max-query-age', given: ['-max-query-age', '2s'], want: { maxQueryAgeMs: 2000 } },
  { name: 'any age', given: ['-max-query-age=0'], want: { maxQueryAgeMs: 0 } },
  ...['', '5', '-1s', 'soon'].map((age) => ({
    name: `-max-query-age ${JSON.stringify(age)}`,
    given: [`-max-query-age=${age}`],
    want: `invalid value "${age}" for flag -max-query-age: must be a duration such as 200ms or 1s, or 0`,
  })),
  { name: '-pidfile', given: ['-pidfile', '/run/x'], want: { pidfile: '/run/x' } },
  { name: 'extra words', given: ['-quiet', 'x', 'y'], want: 'extra command line arguments: [x y]' },
  {
    name: 'flags behind a word are words',
    given: ['x', '-quiet'],
    want: 'extra command line arguments: [x -quiet]',
  },
  {
    name: 'words behind two dashes',
    given: ['--', '-quiet'],
    want: 'extra command line arguments: [-quiet]',
  },
  { name: 'an unknown flag', given: ['-nope'], want: 'flag provided but not defined: -nope' },
  { name: 'a flag without its value', given: ['-conf'], want: 'flag needs an argument: -conf' },
  { name: 'bad syntax', given: ['---x'], want: 'bad flag syntax: ---x' },
  {
    name: 'a port that is none',
    given: ['-p', '70000'],
    want: 'invalid value "70000" for flag -dns.port: must be a port from 0 to 65535',
  },
]

t.test('serve takes the command line of CoreDNS', async (t) => {
  for (const { name, given, want } of serves) {
    const full = typeof want === 'string' ? want : { ...DEFAULTS, ...want }
    t.strictSame(scanServeArgs(given), full, name)
  }
})

t.test('check takes a Corefile and a directory of manifests', async (t) => {
  t.strictSame(
    scanCheckArgs(['-conf', 'a', '--manifests', 'b', '-p', '54', '--offline', '--strict']),
    {
      conf: 'a',
      dnsPort: 54,
      manifests: 'b',
      offline: true,
      strict: true,
      format: 'table',
    },
  )
  t.equal(scanCheckArgs(['-quiet']), 'flag provided but not defined: -quiet')
  t.match(scanCheckArgs(['--manifests', 'd', '-p', '54']), /^-dns\.port has no effect: --manifests/)
  t.equal(scanCheckArgs(['x']), 'extra command line arguments: [x]')
})
