import { Random } from '../../base/random.ts'
import type { ResourceLease } from '../../base/resource-registry.ts'
import { systemTimers } from '../../base/timers.ts'
import { type CacheDraft, scanCacheOptions, scanSeconds } from '../../cache/options.ts'
import { startCache } from '../../cache/start-cache.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import type { Cidr } from '../../dns/text/address.ts'
import { acquireAt, type ClusterPlace, faultsOfAccess } from '../../kube/cluster-access.ts'
import { scanKubeconfig } from '../../plugin/arguments/kubeconfig.ts'
import type { DirectivePart } from '../../plugin/description.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import type { EarlyClients } from './early-clients.ts'

/** `earlyrefresh` is at most as long as the longest TTL of a cache. */
const EARLY_SECONDS_MAX = 3600

interface Place extends ClusterPlace {
  kubeconfig: string
  context: string
}

/** `k8s_cache [TTL] [ZONES...] { … }`: a cache that gives new answers to some Pods before others. */
export const k8sCache: Directive = {
  name: 'k8s_cache',
  setup(c) {
    const d = c.dispenser
    const place: Place = {
      directive: 'k8s_cache',
      position: d.position(),
      kubeconfig: '',
      context: '',
      endpoint: '',
      tls: undefined,
    }
    if (c.block.directives.includes('cache')) {
      throw d.error('k8s_cache has all options of cache: remove cache from this server block')
    }
    const options = scanCacheOptions(d, c.block, (d, draft) => scanProperty(d, c, draft, place))
    const { description, setEarly } = startCache(c, 'k8s_cache', options)
    if (options.earlySeconds === 0) return description
    return [description, followClients(c, place, setEarly)]
  },
}

/** Reads a property that `cache` does not have; false = it is another property. */
function scanProperty(d: Dispenser, c: SetupContext, draft: CacheDraft, place: Place): boolean {
  const name = d.value()
  if (name !== 'earlyrefresh' && name !== 'kubeconfig') return false
  if (name === 'kubeconfig') {
    Object.assign(place, scanKubeconfig(d, c.block.root))
    return true
  }
  const text = d.onlyArg()
  // TTLs are whole seconds.
  draft.earlySeconds = Math.ceil(scanSeconds(d, text))
  if (draft.earlySeconds > EARLY_SECONDS_MAX) {
    throw d.error(`earlyrefresh is longer than 1 hour: ${JSON.stringify(text)}`)
  }
  return true
}

/** Follows the Pods from the start of the instance to its end. */
function followClients(
  c: SetupContext,
  place: Place,
  set: (addresses: readonly Cidr[]) => void,
): DirectivePart {
  const stops: (() => void)[] = []
  let clients: EarlyClients | undefined
  let isOver = false
  const start = async (): Promise<void> => {
    const lease = await acquireClients(c, place)
    // After the instance stopped, nothing would release the lease.
    if (isOver) {
      lease.release()
      return
    }
    clients = lease.item
    clients.start()
    stops.push(clients.subscribe(set), lease.release)
  }
  return {
    check: async ({ isOffline }) => (isOffline ? [] : faultsOfAccess(place)),
    ready: () => clients?.unreadyReason() ?? 'the Pods are not read yet',
    note: () => clients?.note() ?? '',
    start,
    stop: () => {
      isOver = true
      for (const stop of stops) stop()
    },
  }
}

/** Returns the early clients of the cluster. Throws InputError if the configuration is invalid. */
async function acquireClients(c: SetupContext, place: Place): Promise<ResourceLease<EarlyClients>> {
  const { EarlyClients } = await import('./early-clients.ts')
  const { log, clock } = c
  return acquireAt(place, c, {
    type: EarlyClients,
    options: '',
    create: (api) => {
      const random = new Random(Math.trunc(Math.random() * 2 ** 32))
      return new EarlyClients({ api, log, clock, timers: systemTimers, random })
    },
  })
}
