import { ClusterHandler } from '../../authority/cluster/cluster-handler.ts'
import { type ClusterNames, serveCluster } from '../../authority/cluster/serve-cluster.ts'
import { CLUSTER, type ServedCluster } from '../../authority/cluster/served-cluster.ts'
import { ThreadedImage } from '../../authority/cluster/threaded-image.ts'
import { InputError, type Position } from '../../base/errors.ts'
import type { Directive } from '../../plugin/directive.ts'
import { type ExternalOptions, scanOptions } from './options.ts'

/** `k8s_external [ZONES...] { … }`: names of Services for clients outside of their cluster. */
export const k8sExternal: Directive = {
  name: 'k8s_external',
  setup(c) {
    const options = scanOptions(c.dispenser, c.block)
    const { zones, fallthrough, position } = options
    const image = new ThreadedImage(c)
    const named = { name: 'k8s_external', image, zones, fallthrough }
    // `kubernetes` is set up after this directive.
    const find = (): ServedCluster | undefined => c.block.shared.find(CLUSTER)
    const clusterOf = (): ServedCluster => {
      const cluster = find()
      if (cluster === undefined) throw absenceOf(position)
      return cluster
    }
    return {
      handler: (next) => new ClusterHandler(next, named),
      answers: true,
      check: () => (find() === undefined ? [absenceOf(position)] : []),
      ...serveCluster(c, image, namesOf(options), clusterOf),
    }
  },
}

function absenceOf(position: Position): InputError {
  const message =
    'kubernetes is missing in this server block; add it, such as kubernetes cluster.local'
  return new InputError(position, `plugin/k8s_external: ${message}`)
}

/** The names that `options` select. */
function namesOf({ zones, ttlSeconds, apexLabel, headless }: ExternalOptions): ClusterNames {
  return {
    zones,
    ttlSeconds,
    soaTtlSeconds: ttlSeconds,
    key: `k8s_external ${JSON.stringify([apexLabel, headless])}`,
    load: async ({ podNames }) => {
      const { externalScheme } = await import('../../authority/cluster/name-scheme.ts')
      const scheme = externalScheme({ apexLabel, headless, podNames })
      return { scheme, onProgrammed: () => {} }
    },
  }
}
