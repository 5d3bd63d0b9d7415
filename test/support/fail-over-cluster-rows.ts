import type { FailOverCluster } from './fail-over-clusters.ts'
import type { Served } from './settle.ts'

/** A row of the partition table in docs/explanation/health.md, between real clusters. `last`: the site with the fault. */
export interface ClusterRow {
  readonly fault: string
  readonly begin: (last: FailOverCluster) => Promise<unknown>
  readonly end: (last: FailOverCluster) => Promise<unknown>
  readonly two: Served
  readonly three: Served
  /** Only clusters have the part that fails. */
  readonly isOfCluster?: boolean
}

export const WHOLE_SITE_DIES: ClusterRow = {
  fault: 'the whole site dies',
  begin: (last) => Promise.all([last.killServer(), last.stopApplication(), last.killOperator()]),
  end: (last) => last.start(),
  two: { 0: [0] },
  three: { 0: [0, 1], 1: [0, 1] },
}

export const CLUSTER_ROWS: readonly ClusterRow[] = [
  {
    fault: 'the DNS of a site dies',
    begin: (last) => last.killServer(),
    end: (last) => last.startServer(),
    two: {},
    three: {},
  },
  {
    fault: 'the application of a site dies',
    begin: (last) => last.stopApplication(),
    end: (last) => last.startApplication(),
    two: { 0: [0], 1: [0] },
    three: { 0: [0, 1], 1: [0, 1], 2: [0, 1] },
  },
  WHOLE_SITE_DIES,
  {
    fault: 'the API server of a site dies',
    begin: (last) => last.cluster!.killServer(),
    end: async (last) => {
      await last.cluster!.startServer()
      // As Kubernetes does: an operator that cannot renew its lease ends.
      await last.startOperator()
    },
    two: {},
    three: {},
    isOfCluster: true,
  },
  {
    fault: 'the operator of a site dies',
    begin: (last) => last.killOperator(),
    end: (last) => last.startOperator(),
    two: {},
    three: {},
    isOfCluster: true,
  },
]
