import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { HostNetwork } from '../support/host-network.ts'
import { PageShell } from '../support/page-shell.ts'
import { needs, needsRoot } from '../support/peer.ts'
import { root } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { type Place, ToyKubelet } from './toy-kubelet.ts'

const PAGE = 'docs/tutorials/two-clusters.md'
const CLUSTERS = ['berlin', 'boston']
/** Where the page has the Service of each Deployment, without the number of the cluster. The operator has no Service. */
const ADDRESSES = {
  'sextant-server': '192.0.2.1',
  'sextant-exchange': '192.0.2.2',
  'sextant-operator': '192.0.2.3',
  web: '192.0.2.10',
}
const options = { ...needsRoot(), ...needs('kubectl', 'dig', 'nft'), ...needsCluster() }

/** A kubeconfig whose contexts have the names of the clusters. */
function composeKubeconfig(clusters: readonly Cluster[]): object {
  const own = clusters.map((cluster) => parse(readFileSync(cluster.kubeconfig('admin'), 'utf8')))
  return {
    clusters: own.map((one, i) => ({ ...one.clusters[0], name: CLUSTERS[i] })),
    users: own.map((one, i) => ({ ...one.users[0], name: CLUSTERS[i] })),
    contexts: CLUSTERS.map((name) => ({ name, context: { cluster: name, user: name } })),
  }
}

t.setTimeout(CLUSTER_TEST_MS)

t.test(`${PAGE} does what it shows`, options, async (t) => {
  const network = await HostNetwork.create(t)
  const client = await network.addHost('client', ['192.0.2.200/24'])
  const clusters = await Promise.all(CLUSTERS.map(() => Cluster.start(t)))
  const kubelets: ToyKubelet[] = []
  for (const [i, cluster] of clusters.entries()) {
    const places = new Map<string, Place>()
    for (const [name, prefix] of Object.entries(ADDRESSES)) {
      const address = `${prefix}${i + 1}`
      const host = await network.addHost(`${name.replace('sextant-', '')}${i}`, [`${address}/24`])
      places.set(name, { host, address })
    }
    kubelets.push(await ToyKubelet.start(t, cluster, places))
  }
  const directory = temporaryDirectory(t)
  for (const folder of ['crds', 'deploy']) {
    cpSync(join(root, folder), join(directory, folder), { recursive: true })
  }
  process.env.KUBECONFIG = join(directory, 'kubeconfig')
  writeFileSync(process.env.KUBECONFIG, JSON.stringify(composeKubeconfig(clusters)))
  // kubectl keeps a cache there.
  process.env.HOME = directory
  // Not the program of this name that the page gets.
  const dig = `ip netns exec ${client.name} env PATH='${process.env.PATH}' dig`
  await PageShell.run(t, PAGE, directory, { dig })
  if (!t.passing()) t.comment(kubelets.map((kubelet) => kubelet.output()).join('\n'))
})
