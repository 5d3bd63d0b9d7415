import t from 'tap'
import { ask } from '../support/dig.ts'
import { getText } from '../support/get-text.ts'
import { cityEntry, composeMmdb } from '../support/mmdb.ts'
import { needs } from '../support/peer.ts'
import { freePort, layFiles, runSextant, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

/** The Corefile that the project was proposed with; only the source of the records is ours. */
const SEED = `kdrnt {
    debug
    errors
    log
    kuadrant {
        manifests zones
    }
    prometheus 0.0.0.0:9153
}
k.example.com {
    debug
    errors
    log
    geoip GeoLite2-City-demo.mmdb {
        edns-subnet
    }
    metadata
    kuadrant {
        manifests zones
    }
    prometheus 0.0.0.0:9153
}
`

/** Loopback networks that play a place, as Kuadrant's demo database has them. */
const DEMO = composeMmdb({
  networks: { '127.0.100.0/24': cityEntry('IE', 'EU'), '127.0.200.0/24': cityEntry('US', 'NA') },
})

const endpoint = (name: string, target: string, property = '', value = '') => {
  const type = /^[\d.]+$/.test(target) ? 'A' : 'CNAME'
  const specific =
    property === '' ? '' : `\n      providerSpecific: [{ name: ${property}, value: "${value}" }]`
  return `    - dnsName: "${name}"
      recordType: ${type}
      recordTTL: 60
      setIdentifier: "${value}${target}"
      targets: ["${target}"]${specific}
`
}

const RECORD = `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata:
  name: api
  namespace: demo
  labels:
    kuadrant.io/coredns-zone-name: k.example.com
spec:
  rootHost: api.k.example.com
  endpoints:
${[
  endpoint('api.k.example.com', 'klb.api.k.example.com'),
  endpoint('klb.api.k.example.com', 'geo-eu.klb.api.k.example.com', 'geo-code', 'GEO-EU'),
  endpoint('klb.api.k.example.com', 'geo-us.klb.api.k.example.com', 'geo-code', 'US'),
  endpoint('geo-us.klb.api.k.example.com', 'cluster1.klb.api.k.example.com', 'weight', '200'),
  endpoint('geo-eu.klb.api.k.example.com', 'cluster2.klb.api.k.example.com', 'weight', '200'),
  endpoint('geo-eu.klb.api.k.example.com', 'cluster3.klb.api.k.example.com', 'weight', '0'),
  endpoint('cluster1.klb.api.k.example.com', '127.0.0.1'),
  endpoint('cluster2.klb.api.k.example.com', '127.0.0.2'),
  endpoint('cluster3.klb.api.k.example.com', '127.0.0.3'),
  endpoint('*.api.k.example.com', '9.9.9.9'),
].join('')}`

const FILES = { 'GeoLite2-City-demo.mmdb': DEMO, 'zones/api.yaml': RECORD }

const CHAINS = [
  { subnet: '127.0.200.0/24', steps: ['klb', 'geo-us.klb', 'cluster1.klb'], address: '127.0.0.1' },
  { subnet: '127.0.100.0/24', steps: ['klb', 'geo-eu.klb', 'cluster2.klb'], address: '127.0.0.2' },
]

t.test('the Corefile of the proposal starts and answers', needs('dig'), async (t) => {
  const metrics = await freePort()
  const corefile = SEED.replaceAll('0.0.0.0:9153', `127.0.0.1:${metrics}`).replaceAll(
    '{\n    debug',
    '{\n    bind 127.0.0.1\n    debug',
  )
  const port = await freePort()
  const server = await startServer(t, { corefile, files: FILES, args: ['-dns.port', String(port)] })
  for (const { subnet, steps, address } of CHAINS) {
    await t.test(`a client in ${subnet}`, async (t) => {
      const reply = await ask('dig', port, ['api.k.example.com', `+subnet=${subnet}`])
      const names = ['', ...steps.map((step) => `${step}.`)].map((s) => `${s}api.k.example.com.`)
      const want = names.map((name, i) => {
        const next = names[i + 1]
        return `${name} 60 IN ${next === undefined ? `A ${address}` : `CNAME ${next}`}`
      })
      t.strictSame(reply.answer, want.sort())
      t.match(reply.text, new RegExp(`CLIENT-SUBNET: ${subnet}/\\d+`))
    })
  }
  await t.test('a wildcard', async (t) => {
    const reply = await ask('dig', port, ['any.api.k.example.com'])
    t.strictSame(reply.answer, ['any.api.k.example.com. 60 IN A 9.9.9.9'])
  })
  await t.test('the gateway-local weights', async (t) => {
    const reply = await ask('dig', port, ['w.api.k.example.com.kdrnt', 'TXT'])
    t.match(reply.answer.join('\n'), '"200,geo-us.klb.api.k.example.com.kdrnt"')
  })
  await t.test('both blocks count on one metrics listener', async () => {
    const counts = [
      /coredns_dns_requests_total\{[^}]*zone="k\.example\.com\."/,
      /coredns_dns_requests_total\{[^}]*zone="kdrnt\."/,
    ]
    const areThere = async () => {
      const { text } = await getText(`http://127.0.0.1:${metrics}/metrics`)
      return counts.every((count) => count.test(text))
    }
    await until(areThere, 'both counts')
  })
  await server.prints(/\[INFO\] 127\.0\.0\.1:\d+ - \d+ "A IN api\.k\.example\.com\. udp/)
})

t.test('check finds nothing wrong with it as it stands', async (t) => {
  const directory = t.testdir({})
  layFiles(directory, { ...FILES, Corefile: SEED })
  const check = await runSextant(directory, ['check', '-conf', 'Corefile'])
  t.match(check.stdout, 'no errors found')
  t.equal(check.code, 0, check.stderr)
})
