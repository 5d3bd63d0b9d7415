import { join } from 'node:path'
import t, { type Test } from 'tap'
import { check } from '../../src/cli/check.ts'
import { recordOutput } from '../support/recorded-output.ts'

async function run(t: Test, files: Record<string, string>, args: readonly string[] = []) {
  const directory = t.testdir(files)
  const { output, printed, errors } = recordOutput(directory)
  const here = args.map((arg) => arg.replace('{DIR}', directory))
  const code = await check(['-conf', join(directory, 'Corefile'), ...here], output)
  // test/server/unlimited-blocks.test.ts has this line.
  const rest = printed.filter((line) => !line.endsWith('know the clients'))
  return { code, printed: rest, errors }
}

t.test('a good Corefile has no errors', async (t) => {
  const got = await run(t, { Corefile: 'example.org {\n whoami\n log\n}\n' })
  t.strictSame(got, {
    code: 0,
    printed: ['read Corefile: 1 server block: example.org', 'no errors found'],
    errors: [],
  })
})

t.test('every fault is reported, in order of place', async (t) => {
  const parsing = 'Error during parsing'
  const got = await run(t, {
    Corefile: `a {\n etcd\n bufsize x\n nobody\n}\nb: {\n chaos\n}\na {\n}\ntls://c {\n}\n`,
  })
  t.equal(got.code, 1)
  t.strictSame(
    got.errors.map((line) => line.replace(/^(plugin\/bufsize: Corefile:3).*/, '$1')),
    [
      `Corefile:2 - ${parsing}: plugin "etcd" is not supported by this version of Sextant`,
      'plugin/bufsize: Corefile:3',
      `Corefile:4 - ${parsing}: Unknown directive 'nobody'`,
      'Corefile:6: error inspecting server blocks: expecting data after last colon: "b:"',
      'Corefile:9: cannot serve dns://a.:53 - it is already defined',
      'Corefile:11: scheme "tls" is not supported by this version of Sextant',
    ],
  )
})

t.test('what is found as data', async (t) => {
  const files = { Corefile: 'a {\n bufsize x\n}\n', good: 'a {\n whoami\n}\n' }
  const { code, printed, errors } = await run(t, files, ['-o', 'json'])
  t.strictSame([code, errors], [1, []])
  t.match(JSON.parse(printed.join('\n')), {
    isValid: false,
    read: [/: 1 server block: a$/],
    warnings: [],
    faults: [/bufsize: Corefile:2/],
  })
  const good = await run(t, files, ['-o', 'yaml', '-conf', '{DIR}/good'])
  t.strictSame([good.code, good.printed[0]], [0, 'isValid: true'])
})

t.test('a view that serves no query is a warning', async (t) => {
  const view = " view v {\n  expr type() == 'A'\n }\n"
  const block = (directives: string): string => `a {\n${directives} whoami\n}\n`
  const inFront = await run(t, { Corefile: block(view) + block('') })
  t.strictSame([inFront.code, inFront.errors], [0, []])
  const behind = await run(t, { Corefile: block('') + block(view) })
  t.equal(behind.code, 0)
  t.match(behind.errors, [
    /Corefile:4: view v serves no query of dns:\/\/a\.:53: .*no view.*move this/,
  ])
})

t.test('a fault of syntax ends the reading', async (t) => {
  const got = await run(t, { Corefile: 'a {\n nobody\n}\n.:53 { whoami }\n' })
  t.equal(got.code, 1)
  t.match(got.errors, [/Corefile:2 .*Unknown directive/, /Corefile:4 .*no matching opening brace/])
})

t.test('files that directives name are read too', async (t) => {
  const zone = '@ 60 IN SOA ns1 root 1 2 3 4 5\n@ 60 IN NS ns1\nns1 60 IN A 300.0.0.1\n'
  const got = await run(t, {
    Corefile: 'example.org {\n root {DIR}\n file db\n}\n'.replace('{DIR}', t.testdirName),
    db: zone,
  })
  t.equal(got.code, 1)
  t.equal(got.errors.length, 1)
  t.match(got.errors[0], /db:3/)
})

t.test('a directory of manifests can be checked beside', async (t) => {
  const bad = 'kind: DNSRecord\napiVersion: kuadrant.io/v1alpha1\nspec: 7\n'
  const files = { Corefile: 'a {\n whoami\n}\n', zones: { 'bad.yaml': bad } } as unknown as Record<
    string,
    string
  >
  const got = await run(t, files, ['--manifests', '{DIR}/zones'])
  t.equal(got.code, 1)
  t.match(got.errors[0], /bad\.yaml:\d+/)
})

t.test('a bad property of geoip does not hide a bad database', async (t) => {
  const files = { Corefile: 'a {\n geoip none.mmdb {\n  net x IE\n  foo\n }\n}\n' }
  const got = await run(t, files, [])
  t.equal(got.errors.length, 3)
  t.match(got.errors[0], /Corefile:2 .*failed to open database file: .*none\.mmdb/)
  t.match(got.errors[1], /Corefile:3 .*invalid network 'x'/)
  t.match(got.errors[2], /Corefile:4 .*unknown property "foo"/)
})

t.test('a bad property of kuadrant does not hide bad manifests', async (t) => {
  const nameless = 'kind: DNSRecord\napiVersion: kuadrant.io/v1alpha1\nspec: 7\n'
  const elsewhere = dnsRecord('a', endpoint('x', 'A', '192.0.2.1'))
  const files = {
    Corefile:
      `example.com {\n kuadrant {\n  bogus\n  manifests ${t.testdirName}/zones\n  rname a b\n  nameserver ns.example.net\n }\n}\n` +
      `example.org {\n kuadrant {\n  manifests ${t.testdirName}/zones\n  nameserver ns.example.net\n }\n}\n` +
      'example.net {\n kuadrant {\n  manifests\n }\n}\n',
    zones: { 'bad.yaml': nameless, 'good.yaml': elsewhere },
  } as unknown as Record<string, string>
  const got = await run(t, files)
  t.equal(got.code, 1)
  t.match(got.errors, [
    /^plugin\/kuadrant: Corefile:3 - .*unknown property 'bogus'/,
    /^plugin\/kuadrant: Corefile:5 - .*Wrong argument count/,
    /^plugin\/kuadrant: Corefile:17 - .*Wrong argument count/,
    /^zones\/bad\.yaml:\d+: metadata\.name is required/,
  ])
  t.equal(got.errors.length, 4, got.errors.join('\n'))
})

t.test('addresses of a name server outside of the zones are served nowhere', async (t) => {
  const block = (zones: string) =>
    `${zones} {\n kuadrant {\n  manifests ${t.testdirName}/zones\n` +
    '  nameserver ns1.example.org 192.0.2.1\n  nameserver ns2.example.net\n }\n}\n'
  const zones = { 'a.yaml': '' }
  const files = { Corefile: block('k.example.com a.example.com'), zones } as unknown as Record<
    string,
    string
  >
  const got = await run(t, files)
  t.equal(got.code, 0)
  t.match(got.errors, [
    /^\[WARNING\] Corefile:4: .*nameserver ns1\.example\.org\. is not in k\.example\.com\., a\.example\.com\., so its addresses are not served/,
  ])
  t.equal(got.errors.length, 1)
  const inside = await run(t, { ...files, Corefile: block('k.example.com example.org') })
  t.strictSame(inside.errors, [], 'one zone of the block has it')
})

t.test('a Corefile that does not exist is one line', async (t) => {
  const { output, errors } = recordOutput()
  t.equal(await check(['-conf', '/nonexistent/Corefile'], output), 1)
  t.equal(errors.length, 1)
  t.match(errors[0], /^cannot read Corefile \/nonexistent\/Corefile: ENOENT/)
})

function dnsRecord(name: string, endpoints: string, metadata = ''): string {
  return `---
apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata:
  name: ${name}
${metadata}spec:
  rootHost: k.example.com
  endpoints:
${endpoints}`
}

function endpoint(owner: string, type: string, target: string, more = ''): string {
  const fields = `recordType: ${type}\n    targets: ["${target}"]`
  return `  - dnsName: ${owner}.k.example.com\n    ${fields}\n${more}`
}

const DISAGREEING =
  dnsRecord('a', endpoint('x', 'A', '192.0.2.1') + endpoint('y', 'A', '192.0.2.1')) +
  dnsRecord(
    'b',
    endpoint('z', 'A', '::1'.replace('::1', '192.0.2.9')) + endpoint('x', 'CNAME', 'o'),
  ) +
  dnsRecord('c', endpoint('y', 'A', '192.0.2.2', '    recordTTL: 7\n')) +
  dnsRecord(
    'd',
    endpoint('w', 'A', '192.0.2.1', '    setIdentifier: s\n') +
      endpoint('w', 'A', '192.0.2.2', '    setIdentifier: s\n    recordTtl: 9\n'),
  ) +
  dnsRecord(
    'e',
    endpoint(
      'v',
      'A',
      '192.0.2.1',
      '    providerSpecific:\n    - {name: weight, value: 1}\n    - name: geo_code\n      value: EU\n',
    ),
  )

t.test('records that disagree or say things in vain are reported with their places', async (t) => {
  const files = {
    Corefile: `k.example.com {\n kuadrant {\n  manifests ${t.testdirName}/zones\n  nameserver ns.example.net\n }\n}\n`,
    zones: { 'a.yaml': DISAGREEING },
  } as unknown as Record<string, string>
  const want = [
    /^\[WARNING\] zones\/a\.yaml:37: y\.k\.example\.com\. A: TTL 60 \(default\/a\) and 7 \(default\/c\)/,
    /^zones\/a\.yaml:26: x\.k\.example\.com\.: CNAME \(default\/b\) beside A \(default\/a\): .* a CNAME must be alone; delete one of them$/,
    /^zones\/a\.yaml:53: w\.k\.example\.com\. A: set identifier "s" with targets .* \(both in default\/d\): .*give each endpoint its own identifier$/,
    /^zones\/a\.yaml:\d+: default\/d: "recordTtl" is not a field of an endpoint/,
    /^zones\/a\.yaml:\d+: default\/e: property "geo_code" is unknown .*did you mean geo-code\?$/,
  ]
  const got = await run(t, files)
  t.equal(got.code, 1)
  t.match(got.errors, want)
  t.equal(got.errors.length, want.length, got.errors.join('\n'))
  t.strictSame(got.printed, [])
  const alone = await run(t, { Corefile: 'a {\n whoami\n}\n', zones: files.zones! }, [
    '--manifests',
    '{DIR}/zones',
  ])
  t.strictSame(alone.errors, got.errors)
  t.equal(alone.code, 1)
})

t.test('records of no zone, and a mailbox that is none, are warnings', async (t) => {
  const zones = { 'a.yaml': `\n\n${dnsRecord('a', endpoint('x', 'A', '192.0.2.1'))}` }
  const block = (zone: string, more = '') =>
    `${zone} {\n kuadrant {\n  manifests ${t.testdirName}/zones\n${more}  nameserver ns.example.net\n }\n}\n`
  const files = { Corefile: block('example.org', '  rname nobody\n'), zones } as unknown as Record<
    string,
    string
  >
  const got = await run(t, files)
  t.equal(got.code, 0)
  t.match(got.errors, [
    /^\[WARNING\] Corefile:4: .*rname "nobody" is not an e-mail address/,
    /^\[WARNING\] zones\/a\.yaml:7: no zone is served for DNSRecord default\/a/,
  ])
  const taken = await run(t, { ...files, Corefile: block('example.org') + block('example.com') })
  t.strictSame(taken.errors, [], 'another block takes it')
})

t.test('every bad property of a block is reported', async (t) => {
  const got = await run(t, {
    Corefile:
      'a {\n kuadrant {\n  manifests x y\n  nonsense {\n   deep\n  }\n  rname a@b c\n }\n' +
      ' geoip {\n  net x y\n  edns-subnet\n  what\n }\n}\n',
  })
  t.match(got.errors, [
    /^plugin\/kuadrant: Corefile:3 - .*Wrong argument count/,
    /^plugin\/kuadrant: Corefile:4 - .*unknown property 'nonsense'/,
    /^plugin\/kuadrant: Corefile:7 - .*Wrong argument count/,
    /^plugin\/geoip: Corefile:10 - /,
    /^plugin\/geoip: Corefile:12 - .*unknown property "what"/,
  ])
  t.equal(got.errors.length, 5)
})

t.test('a file that does not exist is the fault of its line, whatever the directive', async (t) => {
  const got = await run(t, {
    Corefile: 'a {\n geoip /no.mmdb\n kuadrant {\n  manifests /no/zones\n }\n file /no.db\n}\n',
  })
  t.match(got.errors, [
    /^\[WARNING\] Corefile:6: plugin\/file: Failed to open .*\/no\.db.*trying again/,
    /^plugin\/geoip: Corefile:2 - Error during parsing: failed to open database file: \/no\.mmdb/,
    /^plugin\/kuadrant: Corefile:4 - Error during parsing: \/no\/zones: cannot be listed: ENOENT/,
  ])
  t.equal(got.errors.length, 3)
})

t.test('a directory of manifests that does not exist is named', async (t) => {
  const got = await run(t, { Corefile: 'a {\n whoami\n}\n' }, ['--manifests', '{DIR}/nowhere'])
  t.equal(got.code, 1)
  t.match(got.errors, [/^--manifests nowhere: cannot be listed: ENOENT: no such file or directory/])
})
