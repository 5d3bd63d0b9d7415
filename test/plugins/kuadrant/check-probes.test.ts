import t from 'tap'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
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
