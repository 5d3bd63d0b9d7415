import { join } from 'node:path'
import t, { type Test } from 'tap'
import { escapeControls } from '../../src/base/telemetry/log.ts'
import { check } from '../../src/cli/check.ts'
import { composeLine, type Line } from '../../src/cli/tones.ts'
import { checkManifests } from '../../src/publish/offline/check-manifests.ts'
import { lineBufferTo } from '../support/line-buffer.ts'
import { layFiles } from '../support/server.ts'

// Long: it starts the command for each warning.

async function run(t: Test, files: Record<string, string>, args: readonly string[] = []) {
  const directory = t.testdir({})
  const laid = Object.entries(files).map(([path, text]) => [
    path,
    text.replaceAll('{DIR}', directory),
  ])
  layFiles(directory, Object.fromEntries(laid))
  const printed: string[] = []
  const take = (line: string): void => void printed.push(line.replaceAll(`${directory}/`, ''))
  const takeError = (line: string): void => take(escapeControls(line))
  const lines = lineBufferTo(printed)
  const print = (line: Line): void => take(composeLine(line, false))
  const output = { lines, print, printError: takeError, flush: () => {} }
  const code = await check(['-conf', join(directory, 'Corefile'), ...args], output)
  // test/server/unlimited-blocks.test.ts has this line.
  return { code, printed: printed.filter((line) => !line.endsWith('know the clients')) }
}

/** What no line that is printed may have in it. */
const CONTROLS = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u

const block = (body: string): string => `example.org {\n whoami\n ${body}\n}\n`

const TEMPLATES = ['example.net', 'a.example.org org'].map(
  (zones) => `template IN A ${zones} {\n rcode NXDOMAIN\n }`,
)

const CASES: readonly { name: string; corefile: string; code: number; want: readonly RegExp[] }[] =
  [
    {
      name: 'a block that answers nothing',
      corefile: 'example.org {\n errors\n log\n}\n',
      code: 0,
      want: [/^\[WARNING\] Corefile:1: no directive of server block example\.org answers queries/],
    },
    {
      name: 'no block',
      corefile: '# nothing\n',
      code: 0,
      want: [/^\[WARNING\] .*Corefile: no server block with a zone; serving \.:53/],
    },
    {
      name: 'an import that finds nothing',
      corefile: `import {DIR}/none/*\n${block('log')}`,
      code: 0,
      want: [/^\[WARNING\] No files matching import glob pattern: .*none\/\*$/],
    },
    {
      name: 'a root that is missing',
      corefile: block('root /no/root'),
      code: 0,
      want: [/^\[WARNING\] Corefile:3: plugin\/root: Root path does not exist: \/no\/root$/],
    },
    {
      name: 'zones of directives that are outside of the zones of the block',
      corefile: block(`${TEMPLATES[0]}\n ${TEMPLATES[1]}`),
      code: 0,
      want: [
        /^\[WARNING\] Corefile:3: plugin\/template: no query of the block is for example\.net\.: it is outside of the block's zones$/,
      ],
    },
    {
      name: 'names of log that are outside of the zones',
      corefile: block(
        'log example.com\n log xexample.org\n log 10.0.0.0/8\n log a.example.org org',
      ),
      code: 0,
      want: [
        /^\[WARNING\] Corefile:3: plugin\/log: .*"example\.com": it is outside of the block's zones$/,
        /^\[WARNING\] Corefile:4: plugin\/log: .*"xexample\.org": it is outside/,
        /^\[WARNING\] Corefile:5: plugin\/log: .*"10\.0\.0\.0\/8": it is outside/,
      ],
    },
    {
      name: 'names of log that an earlier line has',
      corefile: block(
        'log a.example.org\n log b.A.example.org c.example.org\n log\n log d.example.org',
      ),
      code: 0,
      want: [
        /^\[WARNING\] Corefile:4: plugin\/log: log: "b\.A\.example\.org" never matches: an earlier log/,
        /^\[WARNING\] Corefile:6: plugin\/log: log: "d\.example\.org" never matches: an earlier log/,
      ],
    },
    {
      name: 'a format as a name, and a field that is none',
      corefile: block('log "{remote} {name}"\n log . "{foo} {name} {/a/b}"'),
      code: 0,
      want: [/Corefile:3: .*is read as a name, .*log \. FORMAT/, /Corefile:4: .*no field \{foo\}/],
    },
    {
      name: 'a variable that is not set',
      corefile: block('nsid {$SX_UNSET}'),
      code: 0,
      want: [/^\[WARNING\] Corefile:3: \{\$SX_UNSET\} is not set/],
    },
    {
      name: 'a variable that is not set, and an error for it',
      corefile: block('tsig {\n secret {$SX_UNSET} YQ==\n }'),
      code: 1,
      want: [
        /\{\$SX_UNSET\} is not set/,
        /^plugin\/tsig: Corefile:4 .*\(\{\$SX_UNSET\} is not set\)$/,
      ],
    },
    {
      name: 'two HTTP directives on one address',
      corefile: block('health :8080\n ready :8080'),
      code: 0,
      want: [/^\[WARNING\] Corefile:3: plugin\/health: :8080 also serves the paths of ready/],
    },
    {
      name: 'HTTP addresses that overlap',
      corefile: block('health :8080\n ready 127.0.0.1:8080'),
      code: 1,
      want: [
        /^Corefile:3: plugin\/health: :8080 overlaps 127\.0\.0\.1:8080 of ready \(Corefile:4\)/,
      ],
    },
    {
      name: 'a HTTP address on the port of DNS',
      corefile: block('health :53'),
      code: 1,
      want: [/plugin\/health: :53 overlaps dns:\/\/:53 of server block/],
    },
    {
      name: 'double quotes in an expression',
      corefile: block('view v {\n expr incidr(client_ip(), "10.0.0.0/8")\n }'),
      code: 1,
      want: [/Corefile:4 .*the Corefile removes double quotes .* '10\.0\.0\.0\/8'$/],
    },
    {
      name: 'a hosts file that is missing',
      corefile: 'example.org {\n hosts /no/hosts\n}\n',
      code: 0,
      want: [/^\[WARNING\] Corefile:2: plugin\/hosts: File does not exist: \/no\/hosts/],
    },
  ]

for (const { name, corefile, code, want } of CASES) {
  t.test(name, async (t) => {
    const got = await run(t, { Corefile: corefile })
    const found = got.printed.filter((line) => !/^(read |no errors found)/.test(line))
    t.match(found, want)
    t.equal(found.length, want.length, found.join('\n'))
    t.equal(got.code, code)
    t.equal((await run(t, { Corefile: corefile }, ['--strict'])).code, 1)
  })
}

const RECORD = `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: {name: app}
spec:
  rootHost: app.example.org
  endpoints:
  - dnsName: app.example.org
    recordType: A
    targets: [192.0.2.1]
    setIdentifier: a
    providerSpecific: [{name: geo-code, value: CODE}]
  - dnsName: app.example.org
    recordType: A
    targets: [192.0.2.2]
    setIdentifier: b
    providerSpecific: [{name: geo-code, value: '*'}]
`

t.test('the summary lists the files that were read, without missing ones', async (t) => {
  const corefile = (dir: string) =>
    `example.org {\n hosts ${dir}/hosts\n loadbalance weighted ${dir}/weights\n}\n`
  const files = { hosts: '192.0.2.1 www.example.org\n', weights: 'www.example.org\n192.0.2.1 3\n' }
  const read = async (dir: string): Promise<string[]> => {
    const { printed } = await run(t, { Corefile: corefile(dir), ...files })
    return printed.filter((line) => /^read .*(hosts|weights)/.test(line))
  }
  t.match(await read('{DIR}'), [/weights: weights$/, /hosts: 2 records, with the lines/])
  t.strictSame(await read('/no'), [])
})

t.test('geo codes that match no client', async (t) => {
  const corefile = (geoip: string) =>
    `example.org {\n ${geoip}\n kuadrant {\n manifests {DIR}/zones\n }\n}\n`
  const found = async (geoip: string, code: string): Promise<string[]> => {
    const files = { Corefile: corefile(geoip), 'zones/a.yaml': RECORD.replace('CODE', code) }
    return (await run(t, files)).printed.filter((line) => line.includes('geo code'))
  }
  for (const code of ['NET-NOSUCH', 'AS99999', 'US-NY']) {
    t.match(await found('geoip', code), [
      new RegExp(`zones/a.yaml:11: default/app: geo code ${code} matches no client`),
    ])
  }
  for (const code of ['US', 'GEO-EU']) t.strictSame(await found('geoip', code), [], code)
  t.match(await found('', 'US'), [/zones\/a.yaml:11: .*: the server block has no geoip/])
  for (const faulty of ['geoip /no/database', 'geoip {\n net x US\n }']) {
    t.strictSame(await found(faulty, 'US'), [], `no word of geoip being absent beside ${faulty}`)
  }
  const nets =
    'geoip {\n net 192.0.2.0/24 US-NY\n net 192.0.2.0/24 AS99999\n net 192.0.2.0/24 NET-NOSUCH\n }'
  for (const code of ['NET-NOSUCH', 'AS99999', 'US-NY'])
    t.strictSame(await found(nets, code), [], code)
})

t.test('locations without coordinates of clients', async (t) => {
  const record = RECORD.replace('geo-code, value: CODE', 'location, value: "52.52,13.40"')
  const found = async (geoip: string): Promise<string[]> => {
    const files = {
      Corefile: `example.org {\n root {DIR}\n ${geoip}\n kuadrant {\n manifests zones\n }\n}\n`,
      'zones/a.yaml': record,
    }
    return (await run(t, files)).printed.filter((line) => line.includes('location has'))
  }
  const at = /zones\/a.yaml:11: default\/app: location has no effect/
  t.match(await found('geoip'), [/: no database and no `net` line of geoip has coordinates$/])
  t.match(await found('geoip'), [at])
  t.match(await found(''), [/: the server block has no geoip$/])
  t.strictSame(await found('geoip /no/database'), [])
  t.strictSame(await found('geoip {\n net 10.0.0.0/8 1,2\n }'), [])
})

t.test('the line of a geo code that matches no client is that of the code', async (t) => {
  const endpoint = (id: string, ...values: string[]): string => `
  - dnsName: app.example.org
    recordType: A
    targets: [192.0.2.1]
    setIdentifier: ${id}
    providerSpecific:
    - {name: weight, value: "1"}${values.map((value) => `\n    - {name: geo-code, value: "${value}"}`).join('')}`
  const record = `${RECORD.slice(0, RECORD.indexOf('\n  - '))}${endpoint('a', 'GEO-EU')}${endpoint(
    'b',
    'DE, net-nosuch',
    'as99999',
  )}${endpoint('c', 'AS99999', 'US-NY')}\n`
  const corefile = 'example.org {\n geoip\n kuadrant {\n manifests {DIR}/zones\n }\n}\n'
  const { printed } = await run(t, { Corefile: corefile, 'zones/a.yaml': record })
  const got = printed.flatMap(
    (line) => /a\.yaml:(\d+): \S+ geo code (\S+)/.exec(line)?.slice(1) ?? [],
  )
  const lines = record.split('\n')
  const lineOf = (text: string): string =>
    `${lines.findIndex((line) => line.includes(`"${text}"`)) + 1}`
  t.strictSame(got, [
    lineOf('DE, net-nosuch'),
    'NET-NOSUCH',
    lineOf('as99999'),
    'AS99999',
    lineOf('US-NY'),
    'US-NY',
  ])
})

t.test('probes without an owner, or of an address that it does not have', async (t) => {
  const probe = (owner: string, address: string) => `---
apiVersion: kuadrant.io/v1alpha1
kind: DNSHealthCheckProbe
metadata: {name: p, labels: {kuadrant.io/health-probes-owner: ${owner}}}
spec: {address: ${address}}
status: {healthy: false}
`
  const lost = async (owner: string, address: string) => {
    const files = {
      Corefile: 'example.org {\n geoip\n kuadrant {\n manifests {DIR}/zones\n }\n}\n',
      'zones/a.yaml': RECORD.replace('CODE', 'US') + probe(owner, address),
    }
    return (await run(t, files)).printed.filter((line) => line.includes('Probe'))
  }
  t.strictSame(await lost('app', '192.0.2.1'), [])
  t.match(await lost('apq', '192.0.2.1'), [
    /zones\/a\.yaml:\d+: DNSHealthCheckProbe default\/p: its owner, DNSRecord default\/apq, is missing/,
  ])
  t.match(await lost('app', '192.0.2.9'), [/DNSRecord default\/app has no target 192\.0\.2\.9/])
})

t.test('no control character of a Corefile or a path is printed', async (t) => {
  for (const odd of ['\u001b[31m', '\u009b31m', '\u2028', '\u202e', '\u007f', 'a\nb']) {
    const files = {
      Corefile: `"a${odd}b.example" {\n whoami\n log "${odd}"\n}\nexample.org {\n auto {\n directory "{DIR}/${odd}"\n }\n}\n`,
    }
    const { printed } = await run(t, files)
    t.ok(printed.length > 1)
    t.strictSame(
      printed.filter((line) => CONTROLS.test(line)),
      [],
      escapeControls(odd),
    )
  }
})

t.test('--offline asks no cluster', async (t) => {
  const files = { Corefile: 'example.org {\n kuadrant\n}\n' }
  t.equal((await run(t, files)).code, 1)
  t.match(await run(t, files, ['--offline']), { code: 0 })
})

t.test('names outside of the zone of a zone file', async (t) => {
  const files = {
    Corefile: 'example.org {\n file {DIR}/db\n}\n',
    db: '@ 60 SOA ns.example.net. h 1 2 3 4 5\n@ 60 NS ns.example.net.\nns.example.net. A 192.0.2.1\n',
  }
  const warning = /^\[WARNING\] db:3: ignored 1 record of names outside of zone example\.org\., /
  for (const { args, code, last } of [
    { args: [], code: 0, last: 'no errors found, 1 warning' },
    { args: ['--strict'], code: 1, last: warning },
  ]) {
    const got = await run(t, files, args)
    t.equal(got.code, code)
    t.ok(got.printed.some((line) => warning.test(line)))
    t.match(got.printed.at(-1), last)
  }
})

t.test('a failover list that names what no record of the host has', async (t) => {
  const record = (name: string, rest: string): string =>
    `apiVersion: kuadrant.io/v1alpha1\nkind: DNSRecord\nmetadata: {name: ${name}${rest}`
  const endpoint = (id: string): string =>
    `spec:\n  rootHost: app.example.org\n  endpoints:\n  - {dnsName: app.example.org, recordType: A, targets: [192.0.2.1], setIdentifier: ${id}}\n`
  const listed = record(
    'one',
    `, annotations: {sextant.io/failover: '*: spare'}}\n${endpoint('a')}`,
  )
  const spare = record('two', `}\n${endpoint('spare')}`)
  const corefile = (more: string): string =>
    `example.org {\n root {DIR}\n geoip\n kuadrant {\n manifests zones\n ${more}\n }\n}\n`
  const warnings = async (files: Record<string, string>, more = '', args: string[] = []) => {
    const { printed } = await run(t, { ...files, Corefile: corefile(more) }, args)
    return printed.filter((line) => line.includes('failover'))
  }
  const warning =
    /failover names "spare", which no endpoint has; correct the annotation \(default\/one\)/
  const alone = { 'zones/one.yaml': listed }
  const both = { ...alone, 'zones/two.yaml': spare }
  t.strictSame(await warnings(both), [])
  t.match(await warnings(alone), [new RegExp(`${warning.source}$`)])
  t.strictSame(await warnings(alone, 'site berlin\n peer 192.0.2.53'), [], 'a peer may have it')
  const texts: string[] = []
  const directory = t.testdir({ 'one.yaml': listed })
  await checkManifests(
    directory,
    ({ message }) => void texts.push(message),
    () => {},
  )
  t.match(texts, [new RegExp(`${warning.source}, unless a peer has it$`)], 'without a Corefile')
})
