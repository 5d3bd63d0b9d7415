import { once } from 'node:events'
import { createServer } from 'node:http'
import t from 'tap'
import { ask } from '../support/dig.ts'
import { needs } from '../support/peer.ts'
import { runSextant, startServer } from '../support/server.ts'
import { reloadZone, startUnbound } from '../support/unbound.ts'
import { until } from '../support/until.ts'

// Long: it waits for TTLs to end, and for addresses to be found down.

const zoneOf = (serial: number, ...records: readonly string[]): string => `$TTL 5
@ IN SOA ns hostmaster ${serial} 3600 600 86400 5
@ IN NS ns
ns IN A 192.0.2.53
${records.join('\n')}
`

const corefile = (resolver: number): string => `k.test:{PORT} {
    bind 127.0.0.1
    transfer { to * }
    kuadrant {
        manifests zones
        snapshot snap 1s
        probe
        probe-allow 127.0.0.0/8
        alias-resolver 127.0.0.1:${resolver}
        alias-allow 127.0.0.2/31
    }
}
`

const manifest = (port: number): string => `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: {name: plain}
spec:
  rootHost: k.test
  endpoints:
  - {dnsName: k.test, recordType: ALIAS, targets: [lb.example], recordTTL: 300}
  - {dnsName: k.test, recordType: MX, targets: ['10 mail.example']}
  - {dnsName: in.k.test, recordType: ALIAS, targets: [there.k.test]}
  - {dnsName: there.k.test, recordType: A, targets: [192.0.2.77]}
  - {dnsName: '*.w.k.test', recordType: ALIAS, targets: [www.example]}
---
apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: {name: checked}
spec:
  rootHost: app.k.test
  healthCheck: {protocol: HTTP, port: ${port}, path: /, interval: 1s, failureThreshold: 1}
  endpoints:
  - {dnsName: app.k.test, recordType: ALIAS, targets: [gw.example]}
`

const LB = ['lb IN A 192.0.2.7', 'lb IN A 192.0.2.8', 'lb IN AAAA 2001:db8::7', 'www IN CNAME lb']
const GATEWAYS = ['gw IN A 127.0.0.2', 'gw IN A 127.0.0.3', 'gw IN A 127.0.0.9']

t.test(
  'ALIAS endpoints follow a name that Unbound resolves',
  needs('unbound', 'dig'),
  async (t) => {
    const gateway = createServer((_, response) => response.end('ok')).listen(0, '127.0.0.2')
    await once(gateway, 'listening')
    t.teardown(() => gateway.close())
    const place = gateway.address()
    const port = typeof place === 'object' && place !== null ? place.port : 0

    const upstream = await startUnbound(t, { zoneText: zoneOf(1, ...LB, ...GATEWAYS) })
    const files = { 'zones/records.yaml': manifest(port) }
    const server = await startServer(t, { corefile: corefile(upstream.port), files })
    const targets = async (name: string, type: string, at = server.port): Promise<string> => {
      const { answer } = await ask('dig', at, [name, type])
      return answer.map((line) => line.split(' ').at(-1)).join(' ')
    }
    const becomes = (name: string, want: string) => {
      return until(async () => (await targets(name, 'A')) === want, `${name} to be ${want}`, 60_000)
    }
    const checkAnswers = async (): Promise<void> => {
      t.equal(await targets('k.test', 'A'), '192.0.2.7 192.0.2.8')
      t.equal(await targets('k.test', 'AAAA'), '2001:db8::7')
      t.equal(await targets('x.w.k.test', 'A'), '192.0.2.7 192.0.2.8')
      t.equal(await targets('k.test', 'MX'), 'mail.example.')
    }
    await becomes('k.test', '192.0.2.7 192.0.2.8')
    await checkAnswers()
    const { answer } = await ask('dig', server.port, ['k.test', 'ANY', '+tcp'])
    t.equal(
      answer.some((line) => line.includes('TYPE65401')),
      false,
      'ALIAS is on no wire',
    )
    const zone = await ask('dig', server.port, ['k.test', 'AXFR'])
    t.match(zone.text, /k\.test\.\s+5\s+IN\s+AAAA\s+2001:db8::7/)
    t.match(zone.text, /\*\.w\.k\.test\.\s+5\s+IN\s+A\s+192\.0\.2\.8/)

    // 127.0.0.3 has no gateway, and 127.0.0.9 is refused.
    await becomes('app.k.test', '127.0.0.2')
    await server.prints(/gw\.example\. has the address 127\.0\.0\.9, which is refused \(loopback\)/)
    const words = ['explain', 'in.k.test', 'A', '--client', '192.0.2.1']
    const { stdout } = await runSextant(server.directory, words)
    t.match(stdout, /192\.0\.2\.77 from alias there\.k\.test\.;/)

    reloadZone(upstream, zoneOf(2, 'lb IN A 192.0.2.9', ...GATEWAYS))
    await becomes('k.test', '192.0.2.9')
    await until(async () => (await targets('k.test', 'AAAA')) === '', 'IPv6 to be removed', 60_000)

    upstream.process.kill('SIGKILL')
    server.process.kill('SIGUSR1')
    await server.prints(/[Rr]eload/)
    for (let i = 0; i < 20; i++) t.equal(await targets('k.test', 'A'), '192.0.2.9')
    await server.prints(/lb\.example\. cannot be resolved: .*; its last addresses are served/)
    t.equal(await targets('k.test', 'A'), '192.0.2.9')

    server.process.kill('SIGTERM')
    await server.exited()
    const next = await startServer(t, { corefile: corefile(upstream.port), beside: server })
    t.equal(await targets('k.test', 'A'), '192.0.2.9', 'as in the snapshot')
    await next.prints(/RRsets of the snapshot are kept/)
    t.equal(await targets('k.test', 'A'), '192.0.2.9', 'until the upstream answers')
  },
)
