import { scanAddress } from '../../../dns/text/address.ts'
import { type ApiObject, textOf } from '../../../kube/api.ts'
import { keyOf } from '../../../kube/object-key.ts'
import { SPEC } from '../../../records/validate/fields.ts'
import type { ExternalDnsAnnotations } from '../external-dns-annotations.ts'
import { itemsOf } from '../object-fields.ts'
import type { ObjectTargets, PlainEndpoint } from '../targets.ts'
import type { NodeParts, SliceEndpoint } from './cluster-parts.ts'
import type { ServiceCluster } from './cluster-view.ts'

/** Priority and weight of SRV records, as in external-dns. */
const SRV_START = '0 50'

/** Returns an SRV endpoint for each port of Nodes. A wildcard has none, because its name would be no wildcard. */
export function portEndpoints(object: ApiObject, host: string): readonly PlainEndpoint[] {
  if (host.startsWith('*.')) return []
  const byName = new Map<string, string[]>()
  for (const port of itemsOf(object.spec, 'ports')) {
    const { nodePort } = port
    if (typeof nodePort !== 'number' || nodePort <= 0) continue
    const protocol = (textOf(port, 'protocol') || 'TCP').toLowerCase()
    const dnsName = `_${textOf(object.metadata, 'name')}._${protocol}.${host}`
    const target = `${SRV_START} ${nodePort} ${host}.`
    byName.set(dnsName, [...(byName.get(dnsName) ?? []), target])
  }
  return [...byName].map(([dnsName, targets]) => ({ dnsName, recordType: 'SRV', targets }))
}

/**
 * Returns the addresses of the Nodes that pass traffic on to the Service. By default these are the external addresses,
 * or the internal ones if no Node has an external one.
 */
export function nodeTargets(
  object: ApiObject,
  externalDns: ExternalDnsAnnotations,
  cluster: ServiceCluster,
): ObjectTargets {
  const isLocal = textOf(object.spec, 'externalTrafficPolicy') === 'Local'
  const nodes = (isLocal ? nodesWithPods(keyOf(object), cluster) : [...cluster.nodes()]).filter(
    ({ isSchedulable }) => isSchedulable,
  )
  const external = nodes.flatMap(({ externalAddresses }) => externalAddresses)
  const internal = nodes.flatMap(({ internalAddresses }) => internalAddresses)
  const access = externalDns.choice('access', ['public', 'private'])
  const isPublic = access === 'public' || (access === '' && external.length > 0)
  const texts = (isPublic ? external : internal).filter((text) => scanAddress(text) !== undefined)
  // The order of Nodes is that of their events.
  return { texts: texts.sort(), place: SPEC.at('type') }
}

/**
 * Returns the Nodes with Pods of the Service, which alone pass traffic on. Only the best state counts that any Pod has:
 * ready, ready but terminating, or not ready.
 */
function nodesWithPods(service: string, cluster: ServiceCluster): readonly NodeParts[] {
  const ranks = new Map<string, number>()
  for (const { endpoints } of cluster.slicesOf(service)) {
    for (const endpoint of endpoints) {
      ranks.set(endpoint.node, Math.max(ranks.get(endpoint.node) ?? 0, rankOf(endpoint)))
    }
  }
  const known = [...ranks].filter(([name]) => cluster.node(name) !== undefined)
  const best = Math.max(...known.map(([, rank]) => rank))
  return known.filter(([, rank]) => rank === best).map(([name]) => cluster.node(name)!)
}

function rankOf({ isReady, isServing }: SliceEndpoint): number {
  if (isReady) return 2
  return isServing ? 1 : 0
}
