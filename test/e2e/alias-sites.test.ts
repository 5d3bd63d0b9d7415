import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import t, { type Test } from 'tap'
import { freePort } from '../support/free-port.ts'
import { needs } from '../support/peer.ts'
import { startUnbound } from '../support/unbound.ts'
import { until } from '../support/until.ts'
import { AMERICA, APP, EUROPE, pairOf, Site } from './sites.ts'

// Long: it waits until addresses are found down and up again.

const SEEN_MS = 120_000

/** The record of the host at a site, which leads to the load balancer of that site. */
function manifest(code: string, target: string, port: number): string {
  return `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: {name: app, namespace: gateways}
spec:
  rootHost: ${APP}
  healthCheck: {protocol: HTTP, port: ${port}, path: /, interval: 1s, failureThreshold: 1}
  endpoints:
  - {dnsName: ${APP}, recordType: ALIAS, setIdentifier: ${code}, targets: [${target}], providerSpecific: [{name: geo-code, value: ${code}}]}
`
}

async function listen(t: Test, host: string, port: number): Promise<Server> {
  const server = createServer((_, response) => response.end('ok')).listen(port, host)
  await once(server, 'listening')
  t.teardown(() => close(server))
  return server
}

function close(server: Server): void {
  server.closeAllConnections()
  server.close()
}

t.test(
  'each site probes what the ALIAS endpoints of both sites lead to',
  needs('unbound', 'dig'),
  async (t) => {
    const records = [
      'east.example. IN A 127.0.0.2',
      'east.example. IN A 127.0.0.3',
      'west.example. IN A 127.0.0.4',
    ]
    const resolver = await startUnbound(t, { records })
    const port = await freePort()
    // 127.0.0.3 has no gateway.
    const east = await listen(t, '127.0.0.2', port)
    const west = await listen(t, '127.0.0.4', port)
    const lines = `alias-resolver 127.0.0.1:${resolver.port}
        alias-allow 127.0.0.0/8
        probe
        probe-allow 127.0.0.0/8`
    const options = await pairOf({
      east: { lines, files: { 'zones/app.yaml': manifest('GEO-EU', 'east.example', port) } },
      west: { lines, files: { 'zones/app.yaml': manifest('GEO-NA', 'west.example', port) } },
    })
    const sites = [await Site.start(t, options.east), await Site.start(t, options.west)]
    const answers = async (subnet: string, want: string): Promise<void> => {
      for (const site of sites) {
        const { name } = site.options
        await until(async () => (await site.ask(subnet)) === want, `${want} in ${name}`, SEEN_MS)
      }
    }
    await answers(EUROPE, '127.0.0.2')
    await answers(AMERICA, '127.0.0.4')

    close(east)
    await answers(EUROPE, '127.0.0.4')
    close(west)
    await answers(EUROPE, '127.0.0.2,127.0.0.3')
    await listen(t, '127.0.0.2', port)
    await answers(AMERICA, '127.0.0.2')
  },
)
