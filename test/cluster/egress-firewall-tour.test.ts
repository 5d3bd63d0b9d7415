import t from 'tap'
import { CLUSTER_TEST_MS } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { needs } from '../support/peer.ts'
import { runPageInCluster } from './cluster-page.ts'

const PAGE = 'docs/how-to/egress-firewall.md'

t.setTimeout(CLUSTER_TEST_MS)

t.test(`${PAGE} does what it shows`, { ...needsCluster(), ...needs('kubectl', 'dig') }, (t) =>
  runPageInCluster(t, PAGE),
)
