import { join } from 'node:path'
import t from 'tap'
import { runWhatIf } from '../../src/cli/what-if.ts'
import { composeMmdb } from '../support/mmdb.ts'
import { recordOutput } from '../support/recorded-output.ts'

/** The record of a site, with one address. */
function siteOf(id: number, annotations: Readonly<Record<string, string>> = {}): string {
  return JSON.stringify({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: `site-${id}`, namespace: 'docs', annotations },
    spec: {
      rootHost: 'app.k.example.com',
      endpoints: [
        {
          dnsName: 'app.k.example.com',
          recordType: 'A',
          setIdentifier: `site-${id}`,
          targets: [`192.0.2.${id}`],
          providerSpecific: [{ name: 'weight', value: '100' }],
        },
      ],
    },
  })
}

const SITES = { 'one.json': siteOf(1), 'two.json': siteOf(2) }
/** A small database, because the bundled one takes seconds. */
const DATABASE = Buffer.from(
  composeMmdb({
    networks: { '64.0.0.0/4': { country: { iso_code: 'US' }, continent: { code: 'NA' } } },
    builtSeconds: Math.trunc(Date.now() / 1000),
  }),
)
const DRAIN = 'sextant.io/drain'
const UNTIL = 'sextant.io/drain-until'

t.test('the drain of an annotation is a change', async (t) => {
  const directory = t.testdir({
    records: SITES,
    drained: { ...SITES, 'two.json': siteOf(2, { [DRAIN]: 'racks move' }) },
    ended: { ...SITES, 'two.json': siteOf(2, { [DRAIN]: '', [UNTIL]: '2020-01-01T00:00:00Z' }) },
    drains: 'id:site-1\n',
    'small.mmdb': DATABASE,
    Corefile: `k.example.com {
  root ${t.testdirName}
  geoip small.mmdb
  kuadrant {
    manifests records
    drain drains
  }
}
`,
  })
  const run = async (...args: string[]) => {
    const { output, printed, errors } = recordOutput(directory)
    t.equal(await runWhatIf(['-conf', join(directory, 'Corefile'), ...args], output), 0)
    t.strictSame(errors, [])
    return printed
  }
  const drained = await run('--manifests', join(directory, 'drained'))
  t.match(drained, [
    /^app\.k\.example\.com\. A changes for 100 % of IPv4/,
    /^ {2}all clients: 192\.0\.2\.1 50 %, 192\.0\.2\.2 50 % -> 192\.0\.2\.1 100 %$/,
  ])
  // The file drains now, whatever is configured.
  t.match(await run('--manifests', join(directory, 'ended')), [/^no answer changes/])
})

t.test('a dump without content is the output of a command that failed', async (t) => {
  const directory = t.testdir({
    records: SITES,
    blank: ' \n',
    Corefile: `k.example.com {\n root ${t.testdirName}\n kuadrant {\n  manifests records\n }\n}\n`,
  })
  const { output, printed, errors } = recordOutput(directory)
  const args = ['-conf', join(directory, 'Corefile'), '--records', join(directory, 'blank')]
  t.equal(await runWhatIf(args, output), 1)
  t.strictSame(printed, [])
  t.strictSame(errors, ['blank: is empty'])
})

t.test('a place without records is reported, because all names seem new or removed', async (t) => {
  const directory = t.testdir({
    records: SITES,
    none: {},
    'gateways.yaml': 'apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Service\n',
    Corefile: `k.example.com {\n root ${t.testdirName}\n kuadrant {\n  manifests records\n }\n}\n`,
  })
  const run = async (...args: string[]) => {
    const { output, printed, errors } = recordOutput(directory)
    const code = await runWhatIf(['-conf', join(directory, 'Corefile'), ...args], output)
    return { code, printed, errors }
  }
  const dump = ['--old-records', join(directory, 'gateways.yaml')]
  const found = await run(...dump, '--manifests', join(directory, 'records'), '--max-share', '1%')
  t.strictSame(found.errors, ['[WARNING] gateways.yaml: has no DNSRecord'])
  t.equal(found.code, 0)
  t.match(found.printed[0], /is added for 100 % of IPv4/)
  const removed = await run('--manifests', join(directory, 'none'))
  t.strictSame(removed.errors, ['[WARNING] none: has no DNSRecord'])
})
