import t from 'tap'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { Gateways } from './gateway-objects.ts'
import { SEEN_MS, ServedCluster, ZONE } from './served-cluster.ts'
import { installGatewayApi } from './source-definitions.ts'

t.setTimeout(CLUSTER_TEST_MS)

t.test(
  'Gateways of a cluster are served with the names of their routes',
  needsCluster(),
  async (t) => {
    const cluster = await Cluster.start(t)
    await cluster.createNamespace('infra')
    await cluster.createNamespace('team')
    const site = await ServedCluster.start(t, cluster.kubeconfig('admin'), {
      properties: 'sources gateway',
    })

    await t.test('definitions that are installed later are followed', async (t) => {
      await site.server.prints(
        /is the CustomResourceDefinition gateways\.gateway\.networking\.k8s\.io installed\?/,
      )
      const { status, text } = await site.ready()
      t.equal(status, 503)
      t.match(text, /gateways in all namespaces: 404/)
      await installGatewayApi(cluster, ['gateways', 'httproutes', 'grpcroutes'])
      await site.says(/^OK$/m)
    })

    const gateways = new Gateways(cluster)
    await t.test('a Gateway, its route and its addresses', async (t) => {
      await gateways.create('infra', 'shop', [{ name: 'all', port: 80, protocol: 'HTTP' }])
      await gateways.route('team', 'shop', [`shop.${ZONE}`, `*.apps.${ZONE}`, 'shop.example.net'])
      await gateways.accept('infra', 'shop', ['192.0.2.1'])
      await gateways.acceptRoute('team', 'shop', 'True')
      await site.sees('shop', '192.0.2.1')
      t.equal(await site.ask('any.apps'), '192.0.2.1')
      await site.server.prints(/no zone is served for Gateway infra\/shop \(shop\.example\.net\)/)
    })
    void SEEN_MS
  },
)
