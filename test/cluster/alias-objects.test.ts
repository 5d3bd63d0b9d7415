import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { needs } from '../support/peer.ts'
import { putFile } from '../support/server.ts'
import { startUnbound } from '../support/unbound.ts'
import { AddressedObject, SERVICE } from './addressed-objects.ts'
import { Gateways } from './gateway-objects.ts'
import { RunningOperator } from './operator.ts'
import { ServedCluster, ZONE } from './served-cluster.ts'
import { installGatewayApi } from './source-definitions.ts'

t.setTimeout(CLUSTER_TEST_MS)

/** Starts what answers health checks at 127.0.0.2. Returns its port. */
async function listen(t: Test): Promise<number> {
  const server = createServer((_, response) => response.end('ok')).listen(0, '127.0.0.2')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

t.test(
  'host names of load balancers become the addresses that answer health checks',
  { ...needs('unbound', 'dig'), ...needsCluster() },
  async (t) => {
    const port = await listen(t)
    const check = { protocol: 'HTTP', port, path: '/up', interval: '1s', failureThreshold: 1 }
    // Nothing listens at 127.0.0.3.
    const records = ['lb.example. IN A 127.0.0.2', 'lb.example. IN A 127.0.0.3']
    const [resolver, cluster] = await Promise.all([startUnbound(t, { records }), Cluster.start(t)])
    const resolving = `alias-resolver 127.0.0.1:${resolver.port}
        alias-allow 127.0.0.0/8
        probe-allow 127.0.0.0/8`
    const namespaces = ['infra', 'apps'].map((name) => cluster.createNamespace(name))
    const definitions = installGatewayApi(cluster, ['gateways', 'httproutes'])
    await Promise.all([cluster.installCrds(), definitions, ...namespaces])
    const kubeconfig = cluster.kubeconfig('admin')
    const gateways = new Gateways(cluster)

    await cluster.must('POST', '/api/v1/namespaces/apps/secrets', {
      metadata: { name: 'coredns', labels: { 'kuadrant.io/default-provider': 'true' } },
      type: 'kuadrant.io/coredns',
      stringData: { ZONES: ZONE },
    })
    const [site] = await Promise.all([
      ServedCluster.start(t, kubeconfig, { properties: `sources service\n        ${resolving}` }),
      RunningOperator.start(t, { kubeconfig, args: ['--watch-namespaces=apps'] }),
    ])
    const { directory, process } = site.server
    const edit = (from: string, to: string): void => {
      const corefile = readFileSync(join(directory, 'Corefile'), 'utf8')
      putFile(directory, 'Corefile', corefile.replace(from, to))
      process.kill('SIGUSR1')
    }

    await t.test('of a Gateway at an apex, after a reload with its kind', async (t) => {
      const service = new AddressedObject(cluster, SERVICE, 'shop')
      await service.create()
      await service.setAddress('192.0.2.1')
      const listener = { name: 'all', port: 80, protocol: 'HTTP' }
      const annotations = { 'sextant.io/health-check': JSON.stringify(check) }
      await gateways.create('infra', 'shop', [listener], annotations)
      await gateways.route('infra', 'shop', [ZONE, `www.${ZONE}`])
      await gateways.accept('infra', 'shop', ['lb.example'])
      await gateways.acceptRoute('infra', 'shop', 'True')
      await site.sees('shop', '192.0.2.1')
      t.equal(await site.ask(''), 'ENODATA')

      edit('sources service', 'sources service gateway')
      await site.sees('', '127.0.0.2')
      t.equal(await site.ask('shop'), '192.0.2.1')
      await gateways.accept('infra', 'shop', ['127.0.0.3'])
      await site.sees('', '127.0.0.3')
      await gateways.accept('infra', 'shop', ['lb.example'])
      await site.sees('', '127.0.0.2')

      edit('sources service gateway', 'sources gateway')
      await site.sees('shop', 'NXDOMAIN')
      t.equal(await site.ask(''), '127.0.0.2')
    })

    await t.test('of a DNSRecord that an operator publishes', async () => {
      edit('sources gateway', 'sources dnsrecord')
      await site.sees('', 'ENODATA')
      const publish = async (name: string, host: string, recordType: string): Promise<void> => {
        const endpoints = [{ dnsName: host, recordType, targets: ['lb.example'] }]
        await cluster.must('POST', cluster.records('apps'), {
          ...{ apiVersion: 'kuadrant.io/v1alpha1', kind: 'DNSRecord', metadata: { name } },
          spec: { rootHost: host, providerRef: { name: 'coredns' }, healthCheck: check, endpoints },
        })
      }
      await publish('app', `app.${ZONE}`, 'ALIAS')
      await publish('apex', ZONE, 'CNAME')
      await site.sees('app', '127.0.0.2')
      await site.sees('', '127.0.0.2')
    })
  },
)
