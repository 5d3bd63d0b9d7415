import t from 'tap'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { needs } from '../support/peer.ts'
import { Prometheus, panelsOf } from '../support/prometheus.ts'
import { RunningOperator } from './operator.ts'
import { record, ServedCluster } from './served-cluster.ts'

t.setTimeout(CLUSTER_TEST_MS)

t.test(
  'each panel of the operator, and those about the API, have data in a real Prometheus',
  { ...needs('prometheus'), ...needsCluster() },
  async (t) => {
    const cluster = await Cluster.start(t)
    await cluster.installCrds()
    await cluster.createNamespace('team')
    await cluster.must('POST', cluster.records('team'), record('first', '192.0.2.1'))
    const kubeconfig = cluster.kubeconfig('admin')
    const [operator, site] = await Promise.all([
      RunningOperator.start(t, { kubeconfig }),
      ServedCluster.start(t, kubeconfig),
    ])
    await site.isReady()
    const prometheus = await Prometheus.start(t, {
      operator: operator.metricsAddress,
      sextant: site.metricsAddress,
    })
    await t.resolves(prometheus.fills(panelsOf('operator')))
    const ofApi = panelsOf('zone').filter(([title]) => title === 'Age of the records')
    t.equal(ofApi.length, 1)
    await t.resolves(prometheus.fills(ofApi))
  },
)
