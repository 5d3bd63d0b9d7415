import t from 'tap'
import { recordManifest } from '../../support/manifest.ts'
import { needs, run } from '../../support/peer.ts'
import { putFile, startServer } from '../../support/server.ts'
import { until } from '../../support/until.ts'

const COREFILE = `k.example.com:{PORT} {
    bind 127.0.0.1
    geoip {
        edns-subnet
        net 198.51.100.0/24 GB
    }
    kuadrant {
        manifests records
        explain 127.0.0.1/32
    }
}
`
const FILES = { 'records/app.yaml': recordManifest('app', '192.0.2.1') }

t.test('a client that may ask gets an explanation, over TCP only', needs('dig'), async (t) => {
  const server = await startServer(t, { corefile: COREFILE, files: FILES })
  const dig = async (...args: string[]): Promise<string> => {
    const { stdout } = await run('dig', ['@127.0.0.1', '-p', String(server.port), ...args])
    return stdout
  }
  const name = '_explain.app.k.example.com'
  // Explanations begin shortly after the start.
  await until(async () => !(await dig(name, 'TXT', '+tcp')).includes('SERVFAIL'), 'ready')
  const found = await dig(name, 'TXT', '+short', '+subnet=198.51.100.0/24', '+tcp')
  t.match(found, /^"001 app\.k\.example\.com\. A for 198\.51\.100\.0\/24: NOERROR"$/m)
  t.match(found, /"\d{3} .* served: 192\.0\.2\.1"/)
  t.match(found, /records\/app\.yaml:\d+/)
  const short = await dig(name, 'TXT', '+ignore')
  t.match(short, /flags: qr aa tc/)
  t.match(short, /ANSWER: 0/)
  t.match(await dig(name, 'A', '+tcp'), /status: NXDOMAIN/)
  const capital = '_EXPLAIN.App.k.example.com'
  t.match(await dig(capital, 'TXT', '+tcp', '+short'), /"001 app\.k\.example\.com\. A/)
  t.match(await dig('-b', '127.0.0.2', name, 'TXT', '+tcp'), /status: NXDOMAIN/)
  t.match(await dig('-b', '127.0.0.2', name, 'TXT'), /status: NXDOMAIN/)
})

t.test('without the property the names are ordinary names', needs('dig'), async (t) => {
  const corefile = COREFILE.replace(/ +explain.*\n/, '')
  const server = await startServer(t, { corefile, files: FILES })
  const args = [
    '@127.0.0.1',
    '-p',
    String(server.port),
    '_explain.app.k.example.com',
    'TXT',
    '+tcp',
  ]
  t.match((await run('dig', args)).stdout, /status: NXDOMAIN/)
})

t.test('in slow start, weights are those of the record', needs('dig'), async (t) => {
  const corefile = COREFILE.replace('explain', 'slow-start 1h\n        explain')
  const endpoint = (id: string): string => {
    const weight = '[{ name: weight, value: "100" }]'
    const target = `[192.0.2.${id}], providerSpecific: ${weight}`
    const owner = 'dnsName: slow.k.example.com, recordType: A'
    return `    - { ${owner}, setIdentifier: "${id}", targets: ${target} }\n`
  }
  const head = recordManifest('slow', '192.0.2.1').split('  - dnsName')[0]!
  const probe = (isHealthy: boolean): string => {
    const labels = { 'kuadrant.io/health-probes-owner': 'slow' }
    return JSON.stringify({
      ...{ apiVersion: 'kuadrant.io/v1alpha1', kind: 'DNSHealthCheckProbe' },
      metadata: { name: 'slow', labels },
      spec: { address: '192.0.2.2' },
      status: { healthy: isHealthy },
    })
  }
  const files = {
    'records/slow.yaml': head + endpoint('1') + endpoint('2'),
    'records/probe.yaml': probe(false),
  }
  const server = await startServer(t, { corefile, files })
  const args = ['@127.0.0.1', '-p', String(server.port), '_explain.slow.k.example.com']
  const ask = async (): Promise<string> => {
    return (await run('dig', [...args, 'TXT', '+tcp', '+short'])).stdout
  }
  await until(async () => (await ask()).includes('192.0.2.2 is down'), 'ready')
  putFile(server.directory, 'records/probe.yaml', probe(true))
  await until(async () => (await ask()).includes('slow start'), 'slow start')
  t.match(await ask(), /decided: 1 95.2% \(weight 100\), 2 4.8% \(weight 5 of 100, slow start\)/)
})
