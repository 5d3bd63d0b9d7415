import { Random } from '../../base/random.ts'
import type { ResourceLease } from '../../base/resource-registry.ts'
import { AddressRules } from '../../egress/learned/address-rules.ts'
import { scanSelector } from '../../egress/selectors/scan-selector.ts'
import { SelectorIndex } from '../../egress/selectors/selector-index.ts'
import { acquireAt, faultsOfAccess } from '../../kube/cluster-access.ts'
import type { Description, DirectivePart } from '../../plugin/description.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { EgressFirewall } from './egressfirewall.ts'
import { exportCounts } from './metrics.ts'
import type { NameFollower } from './name-follower.ts'
import { type EgressFirewallOptions, scanOptions } from './options.ts'

/** Longest time that the end of an instance waits for writes. */
const FLUSH_MS = 1000

/** `egressfirewall { … }`: writes what the names of egress firewalls resolve to into their objects. */
export const egressfirewall: Directive = directiveNamed('egressfirewall')

/** The same directive under the name that it has in OpenShift. */
export const ocpDnsNameResolver: Directive = directiveNamed('ocp_dnsnameresolver')

function directiveNamed(name: string): Directive {
  return { name, setup: (c) => setup(c, name) }
}

function setup(c: SetupContext, name: string): Description {
  const options = scanOptions(c.dispenser, c.block, name)
  const isTwice = [egressfirewall, ocpDnsNameResolver].every((one) => {
    return c.block.directives.includes(one.name)
  })
  if (isTwice) {
    throw c.dispenser.error('egressfirewall and ocp_dnsnameresolver are the same; remove one')
  }
  const source = { selectors: new SelectorIndex(), observer: undefined as NameFollower | undefined }
  if (options.cluster.length === 0) {
    const what = 'cluster is not set: addresses of nodes, Pods and Services are written'
    c.warn(`${what}; set it to their networks`, options.position)
  }
  const selectors = c.broadcast<readonly string[]>((texts) => follow(source.selectors, texts))
  const slots = c.counters()
  const rules = new AddressRules(options.cluster, options.allowed)
  const parts = { name, source, rules, clock: c.clock, slots }
  const stops: (() => void)[] = []
  let isOver = false
  const start = async (): Promise<void> => {
    const lease = await acquireFollower(c, options)
    // After the instance stopped, nothing would release the lease.
    if (isOver) {
      lease.release()
      return
    }
    stops.push(lease.release)
    const { item: follower } = lease
    follower.start()
    if (!(await isSettledIn(follower, options.startupMs))) {
      c.log.warning(
        `starting without the names of the cluster: ${follower.reason || 'no response'}`,
        'egressfirewall-names-unread',
      )
    }
    if (isOver) return
    const publish = (): void => selectors.publish(follower.texts())
    stops.push(follower.onChange(publish))
    source.selectors = follower.selectors
    source.observer = follower
    publish()
  }
  const stop = async (): Promise<void> => {
    isOver = true
    // Clients have these addresses already.
    await source.observer?.flush(FLUSH_MS)
    for (const stop of stops) stop()
  }
  const part: DirectivePart = {
    handler: (next) => new EgressFirewall(next, parts),
    waits: true,
    check: async ({ isOffline }) => (isOffline ? [] : faultsOfAccess(options)),
    ready: () => '',
    note: () => source.observer?.reason ?? '',
    start,
    stop,
  }
  return [part, exportCounts(c, slots)]
}

/** Makes the index of a data thread have the selectors with these texts. */
function follow(index: SelectorIndex, texts: readonly string[]): void {
  const wanted = new Set(texts)
  const known = new Set([...index.all()].map(({ selector }) => selector.text))
  const ownerOf = (object: string) => ({ consumer: '', namespace: '', object })
  for (const text of known) if (!wanted.has(text)) index.set(ownerOf(text), [])
  for (const text of wanted) {
    const selector = known.has(text) ? '' : scanSelector(text, 'openshift')
    if (typeof selector !== 'string') index.set(ownerOf(text), [selector])
  }
}

/**
 * Resolves to false if the follower is not settled after `startupMs`. Keeps the process alive for that
 * time: at a start, nothing else does.
 */
async function isSettledIn(follower: NameFollower, startupMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, startupMs)
  })
  await Promise.race([follower.settled(), timeout])
  clearTimeout(timer)
  return follower.isSettled
}

/** Returns the follower of the cluster. Throws InputError if the configuration is invalid. */
async function acquireFollower(
  c: SetupContext,
  options: EgressFirewallOptions,
): Promise<ResourceLease<NameFollower>> {
  const { limits, gateMs } = options
  const { NameFollower } = await import('./name-follower.ts')
  const { log, clock, metrics, timers } = c
  const random = new Random(Math.trunc(c.random() * 2 ** 32))
  const namespaces = [...options.namespaces].sort()
  return acquireAt(options, c, {
    type: NameFollower,
    options: [namespaces, limits, gateMs],
    create: (api) => {
      const parts = { api, log, clock, timers, random, metrics }
      return new NameFollower({ namespaces, limits, gateMs, ...parts })
    },
  })
}
