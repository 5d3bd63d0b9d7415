import { join } from 'node:path'
import t, { type Test } from 'tap'
import { runGeo } from '../../src/cli/geo.ts'
import { bundledDatabasePath } from '../../src/geo/mmdb/load.ts'
import { composeMmdb } from '../support/mmdb.ts'
import { recordOutput } from '../support/recorded-output.ts'

const ENTRY = {
  country: { iso_code: 'US' },
  continent: { code: 'NA' },
  subdivisions: [{ iso_code: 'CA' }],
  autonomous_system_number: 64500,
}

const RECORD = `
apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: { name: one, namespace: docs }
spec:
  rootHost: one.k.example.com
  endpoints:
    - dnsName: one.k.example.com
      recordType: A
      setIdentifier: us
      targets: [192.0.2.1]
      providerSpecific: [{ name: geo-code, value: US }]
    - dnsName: one.k.example.com
      recordType: A
      setIdentifier: office
      targets: [192.0.2.2]
      providerSpecific: [{ name: geo-code, value: NET-office }]
`

const COREFILE = `k.example.com {
  root {DIR}
  geoip us.mmdb {
    edns-subnet
    net 203.0.113.0/24 NET-office 48.86,2.35
    net 203.0.0.0/16 52.52,13.40
  }
  kuadrant {
    manifests records
  }
}
l.example.com {
  root {DIR}
  geoip us.mmdb
  whoami
}
`

async function run(t: Test, args: readonly string[], corefile = COREFILE, record = RECORD) {
  const directory = t.testdir({
    records: { 'one.yaml': record },
    'us.mmdb': Buffer.from(composeMmdb({ networks: { '203.0.0.0/16': ENTRY } })),
  })
  t.testdir({
    records: { 'one.yaml': record },
    'us.mmdb': Buffer.from(composeMmdb({ networks: { '203.0.0.0/16': ENTRY } })),
    Corefile: corefile.replaceAll('{DIR}', directory),
  })
  const { output, printed, errors } = recordOutput(directory)
  const here = args.map((arg) => arg.replace('{DIR}', directory))
  return { code: await runGeo(here, output), printed, errors }
}

t.test('no database is named as the source for an address that it is not asked for', async (t) => {
  for (const [address, prefix] of [
    ['10.1.2.3', '10.0.0.0/8'],
    ['2001:db8::7', '2001:db8::/32'],
  ] as const) {
    const text = (await run(t, [address])).printed.join('\n')
    t.match(text, `  prefix      ${prefix}, a special prefix: the database is not asked`)
    const json = (await run(t, [address, '-o', 'json'])).printed.join('\n')
    const [database] = JSON.parse(json).blocks[0].databases
    t.match(database, { prefix, isIgnored: true, location: { country: '' } })
  }
})

t.test('the bundled database locates an address', async (t) => {
  const { code, printed } = await run(t, ['81.2.69.142'])
  t.equal(code, 0)
  t.match(printed, [
    '81.2.69.142',
    '  net           -',
    '  ASN           -',
    '  subdivisions  -',
    '  country       GB',
    '  continent     EU',
    '  coordinates   -',
    '  geo codes     GB, GEO-EU, *',
    new RegExp(`database +${bundledDatabasePath()} \\(.*\\), built 20\\d\\d-\\d\\d-\\d\\d`),
    /prefix +81\.2\.\d+\.0\/\d+$/,
    '  class         unknown: no records: the class depends on the geo codes in use',
  ])
})

t.test('each server block with geoip has its own place and class', async (t) => {
  const { code, printed } = await run(t, ['-conf', join('{DIR}', 'Corefile'), '203.0.113.9'])
  t.equal(code, 0)
  t.strictSame(printed, [
    '203.0.113.9 in k.example.com.:53',
    '  net           NET-OFFICE',
    '  ASN           AS64500',
    '  subdivisions  US-CA',
    '  country       US',
    '  continent     NA',
    '  coordinates   48.86,2.35',
    '  geo codes     NET-OFFICE, AS64500, US-CA, US, GEO-NA, *',
    '  database      us.mmdb (Test-City), built 2023-11-14',
    '    prefix      203.0.0.0/16',
    '  net line      203.0.113.0/24 NET-OFFICE 48.86,2.35',
    '  net line      203.0.0.0/16 52.52,13.40',
    '  class         2 of 3: NET-OFFICE, US',
    '  ECS scope     /24',
    '',
    '203.0.113.9 in l.example.com.:53',
    '  net           -',
    '  ASN           AS64500',
    '  subdivisions  US-CA',
    '  country       US',
    '  continent     NA',
    '  coordinates   -',
    '  geo codes     AS64500, US-CA, US, GEO-NA, *',
    '  database      us.mmdb (Test-City), built 2023-11-14',
    '    prefix      203.0.0.0/16',
    '  class         unknown: no records: the class depends on the geo codes in use',
  ])
})

t.test('invalid records are warnings', async (t) => {
  const args = ['-conf', join('{DIR}', 'Corefile'), '203.0.113.9']
  const { code, errors } = await run(t, args, COREFILE, RECORD.replace('192.0.2.1', 'x'))
  t.equal(code, 0)
  t.match(errors.at(-1), /^\[WARNING\] records\/one\.yaml:\d+: docs\/one is refused/)
})

t.test('JSON has the same facts', async (t) => {
  const conf = join('{DIR}', 'Corefile')
  const { printed } = await run(t, ['2001:db8::1', '-conf', conf, '-o', 'json'])
  const { address, blocks } = JSON.parse(printed.join('\n'))
  t.equal(address, '2001:db8::1')
  t.match(blocks[0], {
    zones: ['k.example.com.:53'],
    location: { country: '', asn: 0 },
    geoCodes: ['*'],
    databases: [{ location: { country: '' }, prefix: /^2000::\/\d$/ }],
    nets: [],
    class: { number: 0, count: 3, codes: [] },
    sendsScope: true,
  })
  const inNet = (await run(t, ['203.0.1.1', '-conf', conf, '-o', 'json'])).printed.join('\n')
  t.match(JSON.parse(inNet).blocks[0], {
    location: { country: 'US', coordinates: { latitude: 52.52, longitude: 13.4 } },
    nets: [{ cidr: '203.0.0.0/16', values: ['52.52,13.40'] }],
  })
})

t.test('invalid input is one line', async (t) => {
  const table: [string[], RegExp][] = [
    [['300.1.1.1'], /^invalid address: 300\.1\.1\.1$/],
    [[], /^no address/],
    [['192.0.2.1', '192.0.2.2'], /^extra command line arguments: \[192\.0\.2\.2\]$/],
    [['192.0.2.1', '-o', 'xml'], /^invalid value xml for -o/],
    [['192.0.2.1', '-x'], /^flag provided but not defined: -x$/],
    [['192.0.2.1', '-conf', '/nowhere/Corefile'], /nowhere/],
    [['192.0.2.1', '--records', '/nowhere'], /^\/nowhere: cannot be read/],
  ]
  for (const [args, line] of table) {
    const { code, printed, errors } = await run(t, args)
    t.equal(code, 1, args.join(' '))
    t.strictSame(printed, [])
    t.match(errors, [line])
    t.equal(errors.length, 1)
  }
  const none = await run(t, ['-conf', '{DIR}/Corefile', '192.0.2.1'], '. {\n whoami\n}\n')
  t.strictSame(none, { code: 1, printed: [], errors: ['no server block has geoip'] })
})

t.test('the records of a cluster are not read', async (t) => {
  const corefile = 'k.example.com {\n geoip\n kuadrant\n}\n'
  const { code, printed } = await run(t, ['-conf', '{DIR}/Corefile', '192.0.2.1'], corefile)
  t.equal(code, 0)
  t.match(printed.at(-1), /class +unknown: .*Corefile:3: the records of a cluster are not read/)
})
