import { cpSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { CLUSTER_TEST_MS, Cluster, temporaryDirectory } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { PageRun } from '../support/page.ts'
import { needs } from '../support/peer.ts'
import { root } from '../support/server.ts'

const PAGE = 'docs/how-to/egress-firewall.md'

t.setTimeout(CLUSTER_TEST_MS)

t.test(
  `${PAGE} does what it shows`,
  { ...needsCluster(), ...needs('kubectl', 'dig') },
  async (t) => {
    const cluster = await Cluster.start(t)
    const directory = temporaryDirectory(t)
    cpSync(join(root, 'crds'), join(directory, 'crds'), { recursive: true })
    process.env.KUBECONFIG = cluster.kubeconfig('admin')
    // kubectl keeps a cache there.
    process.env.HOME = directory
    await PageRun.run(t, PAGE, directory)
  },
)
