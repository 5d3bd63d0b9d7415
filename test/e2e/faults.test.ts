import { once } from 'node:events'
import { createServer } from 'node:net'
import t from 'tap'
import { freePort, runSextant, startServer } from '../support/server.ts'

// Long: it starts many servers.

const RECORD = (change: (text: string) => string) => ({
  'records/app.yaml': change(`apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata:
  name: app
  namespace: team
spec:
  rootHost: app.k.example.com
  endpoints:
    - dnsName: app.k.example.com
      recordType: A
      recordTTL: 60
      targets:
        - 192.0.2.1
      providerSpecific:
        - name: geo-code
          value: GEO-EU
        - name: weight
          value: "10"
`),
})

const KUADRANT = `k.example.com:{PORT} {
    bind 127.0.0.1
    kuadrant {
        manifests records
    }
}
`

interface Row {
  readonly name: string
  readonly corefile: string
  readonly files?: Readonly<Record<string, string>>
  /** What both `serve` and `check` print, in one line. */
  readonly prints: RegExp
  /** False: the server starts and serves the rest; only `check` fails. */
  readonly fatal?: boolean
  /** True: `check` fails only with `-strict`. */
  readonly isWarning?: boolean
}

const TABLE: readonly Row[] = [
  {
    name: 'an unknown directive',
    corefile: '. {\n  nonsense\n}\n',
    prints: /Corefile:2 - Error during parsing: Unknown directive 'nonsense'/,
  },
  {
    name: "a directive of CoreDNS's that we lack",
    corefile: '. {\n  etcd\n}\n',
    prints: /Corefile:2.*plugin "etcd" is not supported by this version of Sextant/,
  },
  {
    name: 'a block that is not closed',
    corefile: '.:{PORT} {\n  errors\n',
    prints: /Corefile:2 - Syntax error: Unexpected token 'errors', expecting '}'/,
  },
  {
    name: 'a file to import that does not exist',
    corefile: 'import absent\n',
    prints: /Corefile:1 - Error during parsing: File to import not found: absent/,
  },
  {
    name: 'a missing MMDB',
    corefile: '.:{PORT} {\n  bind 127.0.0.1\n  geoip absent.mmdb\n}\n',
    prints: /Corefile:3.*absent\.mmdb/,
  },
  {
    name: 'a corrupt MMDB',
    corefile: '.:{PORT} {\n  bind 127.0.0.1\n  geoip bad.mmdb\n}\n',
    files: { 'bad.mmdb': 'nothing like it' },
    prints: /Corefile:3.*bad\.mmdb/,
  },
  {
    name: 'kuadrant without a source',
    corefile: 'k.example.com:{PORT} {\n  bind 127.0.0.1\n  kuadrant\n}\n',
    prints: /Corefile:3.*manifests/,
  },
  {
    name: 'a zone file with an error',
    corefile: 'z.example:{PORT} {\n  bind 127.0.0.1\n  file db.z\n}\n',
    files: { 'db.z': '@ 300 IN SOA a b 1 2 3 4 5\n@ IN NS a\nx IN A 300.1.1.1\n' },
    prints: /db\.z:3/,
  },
  {
    name: 'a bad target',
    corefile: KUADRANT,
    files: RECORD((text) => text.replace('192.0.2.1', '192.0.2.256')),
    prints: /app\.yaml:13/,
    fatal: false,
  },
  {
    name: 'a bad type',
    corefile: KUADRANT,
    files: RECORD((text) => text.replace('recordType: A', 'recordType: BOGUS')),
    prints: /app\.yaml:10/,
    fatal: false,
  },
  {
    name: 'a bad geo code',
    corefile: KUADRANT,
    files: RECORD((text) => text.replace('GEO-EU', 'GEO-XX')),
    prints: /app\.yaml:16.*unexpected continent code/,
    fatal: false,
  },
  {
    name: 'a negative weight',
    corefile: KUADRANT,
    files: RECORD((text) => text.replace('"10"', '"-1"')),
    prints: /app\.yaml:18.*invalid weight expected a value >= 0/,
    fatal: false,
  },
  {
    name: 'an absurd weight',
    corefile: KUADRANT,
    files: RECORD((text) => text.replace('"10"', '"99999999999999999999"')),
    prints: /app\.yaml:18.*weight/,
    fatal: false,
  },
  {
    name: 'a name outside its rootHost',
    corefile: KUADRANT,
    files: RECORD((text) => text.replace('dnsName: app.', 'dnsName: other.')),
    prints: /app\.yaml:9.*rootHost/,
    fatal: false,
    isWarning: true,
  },
  {
    name: 'a manifest that is no YAML',
    corefile: KUADRANT,
    files: { 'records/app.yaml': 'a: [1\nb: {' },
    prints: /app\.yaml:\d/,
    fatal: false,
  },
]

for (const row of TABLE) {
  t.test(row.name, async (t) => {
    const fatal = row.fatal ?? true
    const { corefile, files = {} } = row
    const server = await startServer(t, { corefile, files, mustStart: !fatal })
    if (fatal) t.equal(await server.exited(), 1, 'serve exits with 1')
    t.match(server.output(), row.prints)
    t.notMatch(server.output(), /\n\s+at /, 'no stack trace')
    const strict = row.isWarning === true ? ['-strict'] : []
    const check = await runSextant(server.directory, ['check', '-conf', 'Corefile', ...strict])
    t.equal(check.code, 1, 'check exits with 1')
    t.match(check.stdout + check.stderr, row.prints, 'check says the same')
  })
}

t.test('a port in use is one clear line', async (t) => {
  const port = await freePort()
  const taken = createServer().listen(port, '127.0.0.1')
  await once(taken, 'listening')
  t.teardown(() => taken.close())
  const corefile = `.:${port} {\n  bind 127.0.0.1\n  whoami\n}\n`
  const server = await startServer(t, { corefile, mustStart: false })
  t.equal(await server.exited(), 1)
  t.match(server.output(), new RegExp(`127\\.0\\.0\\.1:${port}.*(in use|EADDRINUSE)`))
  t.notMatch(server.output(), /\n\s+at /, 'no stack trace')
})
