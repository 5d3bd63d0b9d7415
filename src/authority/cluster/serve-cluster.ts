import type { ResourceLease } from '../../base/resource-registry.ts'
import { printAddress } from '../../dns/text/address.ts'
import type { DirectivePart } from '../../plugin/description.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import { type VersionSource, ZONE_VERSIONS } from '../../xfr/zone-versions.ts'
import type { ClusterWatch } from './cluster-watch.ts'
import type { ClusterZone, ZonesOptions } from './cluster-zones.ts'
import type { FollowedZones, FollowedZonesOptions } from './followed-zones.ts'
import type { ServedCluster } from './served-cluster.ts'
import type { ThreadedImage } from './threaded-image.ts'

/** The names that a directive serves of a cluster. */
export interface ClusterNames extends Pick<ZonesOptions, 'zones' | 'ttlSeconds' | 'soaTtlSeconds'> {
  /** The options of the directive that `load` depends on. */
  readonly key: string
  /** Returns what only the control thread needs. */
  readonly load: (
    cluster: ServedCluster,
  ) => Promise<Pick<FollowedZonesOptions, 'scheme' | 'onProgrammed'>>
}

const NOT_READ = 'the cluster is not read yet'

/**
 * Returns the part of a directive that serves the names of a cluster in `image`. `clusterOf` is
 * called at the start; it may throw InputError.
 */
export function serveCluster(
  c: SetupContext,
  image: ThreadedImage,
  names: ClusterNames,
  clusterOf: () => ServedCluster,
): DirectivePart {
  // Call it here, in the order of the chain: if two directives have the same zone, the first one counts.
  const versions = c.block.shared.acquire(ZONE_VERSIONS).source()
  const stops: (() => void)[] = []
  let followed: FollowedZones | undefined
  let isOver = false
  const serve = (synced: FollowedZones): void => {
    if (isOver) return
    stops.push(image.serve(synced.zones.image), offerVersions(synced, versions))
  }
  const start = async (): Promise<void> => {
    const cluster = clusterOf()
    const watch = await cluster.acquire()
    stops.push(watch.release)
    const zones = await acquireZones(c, names, cluster, watch.item)
    stops.push(zones.release)
    // After the instance stopped, nothing would release the leases.
    if (isOver) {
      for (const stop of stops) stop()
      return
    }
    followed = zones.item
    watch.item.start()
    if (await isSyncedIn(followed, watch.item.waitMs(cluster.startupMs))) {
      serve(followed)
      return
    }
    const reason = followed.unreadyReason()
    c.log.warning(
      `starting server with unsynced Kubernetes API: ${reason}; queries get SERVFAIL`,
      'kubernetes-api-unsynced',
    )
    void followed.synced().then(() => serve(zones.item))
  }
  return {
    ready: () => followed?.unreadyReason() ?? NOT_READ,
    note: () => followed?.note() ?? '',
    start,
    stop: () => {
      isOver = true
      for (const stop of stops) stop()
    },
  }
}

/** Returns the zones with these names, which blocks share. */
async function acquireZones(
  { clock, log }: SetupContext,
  names: ClusterNames,
  cluster: ServedCluster,
  watch: ClusterWatch,
): Promise<ResourceLease<FollowedZones>> {
  const { FollowedZones } = await import('./followed-zones.ts')
  const loaded = await names.load(cluster)
  const ownAddresses = cluster.ownAddresses()
  const addresses = ownAddresses.map(({ bytes, family }) => printAddress(bytes, family))
  const apexes = names.zones.map((zone) => Buffer.from(zone).toString('latin1'))
  const { zones, ttlSeconds, soaTtlSeconds } = names
  const { podNames } = cluster
  const key = JSON.stringify([names.key, podNames, apexes, ttlSeconds, soaTtlSeconds, addresses])
  return watch.resources.acquire(FollowedZones, key, () => {
    const options = { zones, ttlSeconds, soaTtlSeconds, ownAddresses, ...loaded }
    return new FollowedZones({ ...options, watch, log, clock })
  })
}

/** Offers each version of the zones to `transfer`. The returned function ends that. */
function offerVersions(followed: FollowedZones, versions: VersionSource): () => void {
  const { zones } = followed
  const { image } = zones
  const offered = new Set<Uint8Array>()
  let arena: SharedArrayBuffer | undefined
  const offer = (changed: readonly ClusterZone[]): void => {
    const { buffer } = image.handle
    // After a compaction, nothing keeps the memory of the arena before.
    const hasMoved = buffer !== arena
    arena = buffer
    for (const { apex, serial, changed: sets } of hasMoved ? zones.zones : changed) {
      const version = { zone: apex, serial, buffer, imageVersion: image.version }
      versions.put(version, offered.has(apex) ? sets : undefined)
      offered.add(apex)
    }
  }
  offer([])
  return followed.onPublish(offer)
}

/**
 * Resolves to false if the zones are not synced after `startupMs`. Keeps the process alive for that
 * time: at a start, nothing else does.
 */
async function isSyncedIn(followed: FollowedZones, startupMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, startupMs)
  })
  await Promise.race([followed.synced(), timeout])
  clearTimeout(timer)
  return followed.isSynced
}
