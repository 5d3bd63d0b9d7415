import type { ColumnName } from './columns.ts'

/** A test with real servers: its file and a title there, and the rows of the table that it runs. */
interface RealTest {
  readonly file: string
  readonly title: string
  readonly rows: readonly string[]
}

const DOWN = ['one of several is down', 'all are down']
const ANNOTATIONS = ['`all-down`', '`sticky`', '`drain`']
const FACTS: RealTest = {
  file: 'test/cluster/facts.test.ts',
  title: 'health and settings reach the nameserver',
  rows: ['`weight`', ...ANNOTATIONS, ...DOWN],
}

/** Rows that run with real servers, and, in the columns of clusters, with real API servers and operators. */
export const REAL_TESTS: Readonly<Record<ColumnName, readonly RealTest[]>> = {
  plain: [
    {
      file: 'test/e2e/steering.test.ts',
      title: 'GEO, then weight, for every type at every kind of owner',
      rows: ['`weight`', '`geo-code` of an address'],
    },
  ],
  'own cluster': [FACTS],
  delegating: [FACTS],
  'second cluster': [
    {
      file: 'test/cluster/three-clusters.test.ts',
      title: 'weights hold through the edge',
      rows: ['`weight`'],
    },
    {
      file: 'test/cluster/dead-cluster.test.ts',
      title: 'a dead cluster loses its traffic',
      rows: ['all of one site are down'],
    },
  ],
  'v2 peer': [
    {
      file: 'test/e2e/sites.test.ts',
      title: 'weights of both sites count, and so does silence in the end',
      rows: ['`weight`'],
    },
    {
      file: 'test/e2e/fail-over.test.ts',
      title: 'the partition table holds between real servers',
      rows: ['all of one site are down'],
    },
  ],
  'v1 peer': [
    {
      file: 'test/cluster/fail-over-load-v1.test.ts',
      title: 'in any fault of a cluster, no query to a live server fails',
      rows: ['up', 'unknown'],
    },
  ],
}
