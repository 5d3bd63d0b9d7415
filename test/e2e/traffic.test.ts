import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { TrafficReport } from '../../src/plugin/admin-traffic.ts'
import { UdpClient } from '../support/client.ts'
import { fetchLocal } from '../support/http-client.ts'
import { freePort, putFile, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

// Long: it starts a server.

const endpoint = (setIdentifier: string, address: string, weight: number, code: string) => ({
  dnsName: 'app.k.example.com',
  recordType: 'A',
  setIdentifier,
  targets: [address],
  providerSpecific: [
    { name: 'weight', value: String(weight) },
    ...(code === '' ? [] : [{ name: 'geo-code', value: code }]),
  ],
})
const record = (dublinWeight: number) => ({
  apiVersion: 'kuadrant.io/v1alpha1',
  kind: 'DNSRecord',
  metadata: { name: 'app', namespace: 'gateways' },
  spec: {
    rootHost: 'app.k.example.com',
    endpoints: [
      endpoint('dublin', '192.0.2.1', dublinWeight, 'GEO-EU'),
      endpoint('milan', '192.0.2.2', 1, 'GEO-EU'),
      endpoint('dallas', '192.0.2.3', 1, '*'),
    ],
  },
})

t.test('the traffic of all threads, over a reload and a new version of the records', async (t) => {
  const admin = await freePort()
  const corefile = `k.example.com:{PORT} {
    bind 127.0.0.1
    multisocket 2
    admin 127.0.0.1:${admin} {
        console on
    }
    geoip {
        edns-subnet
        net 198.51.100.0/24 IE
    }
    kuadrant {
        manifests records
    }
}
example.net:{PORT} {
    bind 127.0.0.1
    whoami
}
`
  const server = await startServer(t, {
    corefile,
    files: { 'records/app.json': JSON.stringify(record(3)) },
  })
  const read = async (): Promise<TrafficReport> => {
    const path = '/v1/traffic?period=10m&name=App.K.example.com'
    return JSON.parse((await fetchLocal(admin, { path })).body)
  }
  const answersOf = ({ endpoints }: TrafficReport): number => {
    return endpoints.reduce((sum, { answers }) => sum + answers, 0)
  }
  const ask = async (count: number, name: string, subnet?: string): Promise<void> => {
    // Each client has a port of its own, so that both threads get queries.
    for (let i = 0; i < 8; i++) {
      const client = await UdpClient.connect(server.port)
      const question = { name, type: 'A', ...(subnet === undefined ? {} : { subnet }) }
      await Promise.all(Array.from({ length: count / 8 }, () => client.ask(question)))
      client.close()
    }
  }
  await ask(400, 'app.k.example.com', '198.51.100.0/24')
  await ask(80, 'app.k.example.com', '203.0.113.0/24')
  await ask(40, '\\<b\\>\\007.k.example.com')
  await ask(40, 'example.net')
  await ask(40, 'example.org')
  await until(async () => answersOf(await read()) >= 480, 'all answers are counted')
  const first = await read()
  const of = (name: string) => first.endpoints.find(({ endpoint }) => endpoint === name)!
  t.match(of('dublin'), { zone: 'k.example.com.', tier: 'GEO-EU', weight: 3, share: 0.75 })
  t.match(of('milan'), { tier: 'GEO-EU', weight: 1, share: 0.25 })
  t.match(of('dallas'), { tier: '*', weight: 1, share: 1, answers: 80, answeredShare: 1 })
  t.equal(of('dublin').answers + of('milan').answers, 400)
  t.ok(Math.abs(of('dublin').answeredShare! - 0.75) < 0.1, `${of('dublin').answeredShare}`)
  t.strictSame(first.topNames.map(({ name, type, rcode }) => `${name} ${type} ${rcode}`).sort(), [
    '<b>\\007.k.example.com. A NXDOMAIN',
    'app.k.example.com. A NOERROR',
    'example.net. A NOERROR',
  ])
  t.strictSame(
    first.rcodes.map(({ rcode }) => rcode),
    ['NOERROR', 'NXDOMAIN', 'REFUSED'],
  )
  t.ok(first.latencyMs.p50.some((ms) => ms !== null && ms < 1000))

  putFile(server.directory, 'records/app.json', JSON.stringify(record(1)))
  await until(
    async () => (await read()).endpoints.some(({ share }) => share === 0.5),
    'new version',
  )
  t.equal(answersOf(await read()), 480, 'a new version keeps the counts')

  appendFileSync(join(server.directory, 'Corefile'), '# changed\n')
  server.process.kill('SIGUSR1')
  await server.prints(/Reloading complete/)
  await ask(400, 'app.k.example.com', '198.51.100.0/24')
  await until(async () => answersOf(await read()) >= 880, 'both instances are counted')
  const second = await read()
  t.equal(second.since, first.since)
  t.equal(second.endpoints.length, 3)
})
