import t from 'tap'
import { CLUSTER_TEST_MS } from '../support/cluster.ts'
import { testLoadedClusters } from '../support/fail-over-clusters-load.ts'

t.setTimeout(CLUSTER_TEST_MS)
testLoadedClusters(
  'in any fault of a cluster, no query to a live server fails, and a dead address is gone',
  ['v2', 'v2'],
)
