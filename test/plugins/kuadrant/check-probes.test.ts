import { join } from 'node:path'
import t from 'tap'
import { check } from '../../../src/cli/check.ts'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
import { lineBufferTo } from '../../support/line-buffer.ts'
import { layFiles } from '../../support/server.ts'
import { SetUp } from '../../support/setup.ts'

const manifest = (
  name: string,
  targets: string,
  check = 'healthCheck: { path: /, port: 80 }',
) => `---
apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: { name: ${name} }
spec:
  rootHost: ${name}.k.example.com
  endpoints:
  - { dnsName: ${name}.k.example.com, recordType: A, targets: [${targets}] }
  ${check}
`

t.test('check lists the addresses that are not probed, and the server logs them', async (t) => {
  const directory = t.testdir({
    'a.yaml':
      manifest('a', '10.1.2.3, 192.0.2.1, 192.168.7.7') +
      manifest('b', '10.1.2.4', '') +
      manifest('c', '192.0.2.2'),
  })
  const warningsOf = async (properties: string): Promise<readonly string[]> => {
    const text = `kuadrant {\n manifests ${directory}\n ${properties}\n}`
    const { warnings } = await new SetUp(kuadrant, text, ['k.example.com.']).check()
    return warnings.filter((line) => line.includes('not probed'))
  }
  t.match(await warningsOf('probe'), [
    /a\.yaml:\d+: DNSRecord default\/a: addresses that are not probed are always served: 10\.1\.2\.3 \(a private network\), 192\.168\.7\.7 \(a private network\); to probe them, add `probe-allow 10\.0\.0\.0\/8 192\.168\.0\.0\/16`/,
  ])
  t.equal((await warningsOf('probe')).length, 1)
  t.same(await warningsOf('probe\n probe-allow 10.0.0.0/8 192.168.0.0/16'), [])
  t.same(await warningsOf('probe off'), [])
  t.same(await warningsOf(''), [])
})

const PROBE = `---
apiVersion: kuadrant.io/v1alpha1
kind: DNSHealthCheckProbe
metadata:
  name: seen
  labels: { kuadrant.io/health-probes-owner: a }
spec: { address: 192.0.2.1, port: 80 }
`
const HEADERS = `healthCheck:
    path: /
    additionalHeadersRef: { name: secret }`

/** Bodies of the kuadrant directives of server blocks, and the ends of the warnings. */
const UNCHECKED: readonly {
  readonly name: string
  readonly blocks: readonly string[]
  readonly manifests: string
  readonly want: readonly RegExp[]
}[] = [
  {
    name: 'no block probes',
    blocks: ['', ''],
    manifests: manifest('a', '192.0.2.1') + manifest('b', '192.0.2.1', ''),
    want: [
      /a\.yaml:9: DNSRecord default\/a: healthCheck has no effect, all addresses are always served: no server block with these manifests probes; add `probe` to one$/,
    ],
  },
  {
    name: 'another block with the same manifests probes',
    blocks: ['', 'probe'],
    manifests: manifest('a', '192.0.2.1'),
    want: [],
  },
  { name: 'off', blocks: ['probe off'], manifests: manifest('a', '192.0.2.1'), want: [] },
  {
    name: 'peers',
    blocks: ['site here\n peer 127.0.0.1:5301'],
    manifests: manifest('a', '192.0.2.1'),
    want: [],
  },
  {
    name: 'nothing to probe',
    blocks: [''],
    manifests: manifest('a', '192.0.2.1').replace('recordType: A', 'recordType: TXT'),
    want: [
      /a\.yaml:9: DNSRecord default\/a: healthCheck has no effect: no endpoint has an address/,
    ],
  },
  {
    name: 'a probe without status',
    blocks: [''],
    manifests: manifest('a', '192.0.2.1', '') + PROBE,
    want: [
      /a\.yaml:10: DNSHealthCheckProbe default\/seen: it has no effect: it has no status, and no server block with these manifests probes; add `probe` to one$/,
    ],
  },
  {
    name: 'the status of a probe in the manifests counts',
    blocks: [''],
    manifests: `${manifest('a', '192.0.2.1') + PROBE}status: { healthy: true }\n`,
    want: [],
  },
  {
    name: 'headers, with and without probes',
    blocks: ['', 'probe'],
    manifests: manifest('a', '192.0.2.1', HEADERS),
    want: [
      /a\.yaml:11: DNSRecord default\/a: its addresses are not probed, all are always served: this server reads no Secret; remove additionalHeadersRef$/,
    ],
  },
]

for (const { name, blocks, manifests, want } of UNCHECKED) {
  t.test(`health checks that no server does: ${name}`, async (t) => {
    const keys = ['k.example.com', 'dns2.example.com']
    const corefile = blocks.map(
      (body, i) => `${keys[i]} {\n kuadrant {\n manifests {DIR}\n ${body}\n }\n}\n`,
    )
    const directory = t.testdir({})
    const records = join(directory, 'records')
    layFiles(directory, {
      Corefile: corefile.join('').replaceAll('{DIR}', records),
      'records/a.yaml': manifests,
    })
    const printed: string[] = []
    const printError = (line: string): void => void printed.push(line)
    const output = { lines: lineBufferTo([]), print: () => {}, printError, flush: () => {} }
    await check(['-conf', join(directory, 'Corefile')], output)
    const found = printed.filter((line) => /a\.yaml|Corefile.*error/.test(line))
    t.equal(found.length, want.length, found.join('\n'))
    for (const [i, pattern] of want.entries()) t.match(found[i], pattern)
  })
}
