import t from 'tap'
import { CLUSTER_TEST_MS } from '../support/cluster.ts'
import { testLoadedClusters } from '../support/fail-over-clusters-load.ts'

t.setTimeout(CLUSTER_TEST_MS)
testLoadedClusters(['v2', 'v2'])
