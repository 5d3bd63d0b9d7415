import type { ResourceLease } from '../../base/resource-registry.ts'
import { scanAddress } from '../../dns/text/address.ts'
import { AddressSet } from '../../dns/text/address-set.ts'
import { faultsOfAccess } from '../../kube/cluster-access.ts'
import type { CheckHook, Description, DirectivePart } from '../../plugin/description.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { NAT64_PREFIX } from '../../plugin/translation-prefix.ts'
import { AGENT_OUTPUTS } from './agent-options.ts'
import { Concurrency } from './concurrency.ts'
import { type ClientSource, Egress } from './egress.ts'
import { exportCounts } from './metrics.ts'
import type { NodeService } from './node-service.ts'
import { scanConfig } from './options.ts'
import { ReplyTimes } from './reply-times.ts'

/** Longest wait of an instance that ends for its queries in progress. */
const LAST_QUERIES_MS = 5000

/** `egress { … }`: enforces egress policies by name for the Pods of this node. */
export const egress: Directive = { name: 'egress', setup }

function setup(c: SetupContext): Description {
  const config = scanConfig(c.dispenser, c.block)
  c.shared.acquire(AGENT_OUTPUTS).add(config)
  if (config.cluster.length === 0) {
    const what = 'cluster is not set: connections to Pods, Services and nodes are dropped'
    c.warn(`${what} unless a policy allows them; set it to their networks`, config.position)
  }
  // Else a few clients could use up the queries in progress of the address, which have no shares.
  c.block.waitingMax += config.concurrency.total
  const source: ClientSource = { addresses: new AddressSet([]), gate: undefined }
  const addresses = c.broadcast<readonly string[]>((texts) => {
    source.addresses = setOf(texts)
  })
  const slots = c.counters()
  const times = new ReplyTimes()
  const concurrency = new Concurrency(config.concurrency, c.log)
  const logDecision = config.logsDecisions ? c.log.info : undefined
  const { clock, block } = c
  const parts = { source, options: config, block, concurrency, clock, slots, times, logDecision }
  let lease: ResourceLease<NodeService> | undefined
  const check: CheckHook = async (report) => {
    if (config.policies === '') return report.isOffline ? [] : faultsOfAccess(config)
    const { checkPolicies } = await import('./check-policies.ts')
    return checkPolicies(config, report)
  }
  const stops: (() => void)[] = []
  let isOver = false
  const start = async (): Promise<void> => {
    const { acquireNode } = await import('./acquire-node.ts')
    lease = await acquireNode(c, config)
    // After the instance stopped, nothing would release the lease.
    if (isOver) {
      lease.release()
      return
    }
    stops.push(lease.release)
    const { item: node } = lease
    const nat64Prefix = block.shared.find(NAT64_PREFIX)
    if (nat64Prefix !== undefined) node.agent.addNat64(nat64Prefix)
    await node.start()
    if (isOver) return
    const { agent } = node
    const publish = (): void => {
      addresses.publish(agent.clients().flatMap((client) => client.addresses))
    }
    stops.push(agent.onClients(publish))
    source.gate = agent
    publish()
  }
  const stop = async (): Promise<void> => {
    isOver = true
    // After a reload, the old agent must still allow what these queries lead to.
    await concurrency.idle(c.timers, LAST_QUERIES_MS)
    for (const stop of stops.toReversed()) stop()
  }
  const part: DirectivePart = {
    handler: (next) => new Egress(next, parts),
    waits: true,
    check,
    ready: () => '',
    note: () => lease?.item.reason ?? '',
    problems: () => lease?.item.problems() ?? [],
    start,
    serving: () => void lease?.item.restore(),
    stop,
  }
  return [part, exportCounts(c, slots, times)]
}

function setOf(texts: readonly string[]): AddressSet {
  return new AddressSet(
    texts.flatMap((text) => {
      const address = scanAddress(text)
      return address === undefined ? [] : [{ ...address, bits: address.bytes.length * 8 }]
    }),
  )
}
