import { readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { Random } from '../../base/random.ts'
import type { ResourceLease } from '../../base/resource-registry.ts'
import { isSystemError } from '../../base/system-error.ts'
import { systemTimers } from '../../base/timers.ts'
import { scanResolvConf } from '../../dns/resolv-conf.ts'
import { type Address, printAddress, scanAddress } from '../../dns/text/address.ts'
import { isReverseZone } from '../../dns/text/reverse-name.ts'
import type { BlockConfig, Directive, SetupContext } from '../../plugin/directive.ts'
import { acquireAt, faultsOfAccess } from '../../sources/kubernetes/cluster-access.ts'
import type { VersionSource } from '../../xfr/zone-versions.ts'
import { ZoneSet } from '../../zone/lookup/zone-set.ts'
import type { ClusterFollower } from './cluster-follower.ts'
import { KubernetesHandler } from './kubernetes.ts'
import { type KubernetesOptions, scanOptions } from './options.ts'
import { PodNames } from './pod-names.ts'
import { PodSearchPaths } from './pod-search-paths.ts'
import { ThreadedImage } from './threaded-image.ts'

const RESOLV_CONF = '/etc/resolv.conf'

/** `kubernetes [ZONES...] { … }`: names of the Services and Pods of a cluster. */
export const kubernetes: Directive = {
  name: 'kubernetes',
  setup: (c) => {
    const options = scanOptions(c.dispenser, c.block)
    const { zones, fallthrough, ttlSeconds } = options
    const image = new ThreadedImage(c)
    c.addHandler(
      (next) => {
        const handler = new KubernetesHandler(next, image, zones, fallthrough)
        if (options.pods !== 'insecure') return handler
        const named = zones.filter((zone) => !isReverseZone(zone))
        return new PodNames(handler, image, named, ttlSeconds)
      },
      { answers: true },
    )
    offerSearchPaths(c, options, image)
    c.onCheck(async ({ isOffline }) => (isOffline ? [] : faultsOfAccess(options)))
    followCluster(c, options, image)
  },
}

/** Offers the search paths of Pods to `autopath`. */
function offerSearchPaths(
  c: SetupContext,
  { zones, pods }: KubernetesOptions,
  image: ThreadedImage,
): void {
  if (!c.block.directives.includes('autopath')) return
  const paths = new PodSearchPaths(image, new ZoneSet(zones), pods === 'verified')
  c.block.searchPaths.set('kubernetes', paths)
  const follow = (host: readonly Uint8Array[]): void => {
    paths.host = host
  }
  const broadcast = c.broadcast<readonly Uint8Array[]>(follow)
  c.onStartup(() => {
    const host = [...readHostSearchPath(), Uint8Array.of(0)]
    follow(host)
    broadcast.publish(host)
  })
}

/** Returns the search path of this host, which Pods have as well; none if it cannot be read. */
function readHostSearchPath(): readonly Uint8Array[] {
  try {
    return scanResolvConf(readFileSync(RESOLV_CONF, 'utf8')).search
  } catch (error) {
    if (isSystemError(error)) return []
    throw error
  }
}

/** Follows the cluster from the start of the instance to its end. */
function followCluster(c: SetupContext, options: KubernetesOptions, image: ThreadedImage): void {
  // Call it here, in the order of the chain: if two directives have the same zone, the first one counts.
  const versions = c.block.zoneVersions.source()
  const stops: (() => void)[] = []
  let follower: ClusterFollower | undefined
  let isOver = false
  const serve = (synced: ClusterFollower): void => {
    if (isOver) return
    stops.push(image.serve(synced.zones.image), offerVersions(synced, versions))
  }
  c.onReady(
    () => follower?.unreadyReason() ?? 'the cluster is not read yet',
    () => follower?.note() ?? '',
  )
  c.onStartup(async () => {
    const lease = await acquireFollower(c, options)
    // After the instance stopped, nothing would release the lease.
    if (isOver) {
      lease.release()
      return
    }
    stops.push(lease.release)
    follower = lease.item
    follower.start()
    if (!(await isSyncedIn(follower, options.startupMs))) {
      const reason = follower.unreadyReason()
      c.log.warning(`starting server with unsynced Kubernetes API: ${reason}; queries get SERVFAIL`)
      void follower.synced().then(() => serve(lease.item))
    } else serve(lease.item)
  })
  c.onShutdown(() => {
    isOver = true
    for (const stop of stops) stop()
  })
}

/** Offers each version of the zones to `transfer`. The returned function ends that. */
function offerVersions(follower: ClusterFollower, versions: VersionSource): () => void {
  const { zones } = follower
  const { image } = zones
  const offered = new Set<Uint8Array>()
  const offer = (changed: typeof zones.zones): void => {
    for (const { apex, serial, changed: sets } of changed) {
      const version = {
        zone: apex,
        serial,
        buffer: image.handle.buffer,
        imageVersion: image.version,
      }
      versions.put(version, offered.has(apex) ? sets : undefined)
      offered.add(apex)
    }
  }
  offer(zones.zones)
  return follower.onPublish(offer)
}

/**
 * Resolves to false if the follower is not synced after `startupMs`. Keeps the process alive for that
 * time: at a start, nothing else does.
 */
async function isSyncedIn(follower: ClusterFollower, startupMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, startupMs)
  })
  await Promise.race([follower.synced(), timeout])
  clearTimeout(timer)
  return follower.isSynced
}

/** Returns the follower of the cluster. Throws InputError if the configuration is invalid. */
async function acquireFollower(
  c: SetupContext,
  options: KubernetesOptions,
): Promise<ResourceLease<ClusterFollower>> {
  const { position: _, fallthrough: __, startupMs: ___, zones, ...rest } = options
  const { ClusterFollower } = await import('./cluster-follower.ts')
  const { MeasuredClient, programmingDurations } = await import('./metrics.ts')
  const addresses = ownAddresses(c.block)
  const texts = addresses.map(({ bytes, family }) => printAddress(bytes, family))
  const apexes = zones.map((zone) => Buffer.from(zone).toString('latin1'))
  return acquireAt(options, c, {
    type: ClusterFollower,
    options: [apexes, rest, texts],
    create: (api) => {
      const random = new Random(Math.trunc(Math.random() * 2 ** 32))
      const { log, clock, metrics } = c
      const durations = programmingDurations(metrics)
      return new ClusterFollower({
        ...rest,
        zones,
        ownAddresses: addresses,
        api: new MeasuredClient(api, clock, metrics),
        onProgrammed: (seconds) =>
          durations.observe({ service_kind: 'headless_with_selector' }, seconds),
        log,
        clock,
        timers: systemTimers,
        random,
      })
    },
  })
}

/** Returns the addresses of this server that clients outside of its host can reach. */
function ownAddresses({ listenHosts }: BlockConfig): readonly Address[] {
  const interfaces = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  const texts =
    listenHosts.length > 0
      ? listenHosts
      : interfaces.filter(({ internal }) => !internal).map(({ address }) => address)
  return texts
    .flatMap((text) => scanAddress(text) ?? [])
    .filter(({ bytes, family }) => !isLocal(bytes, family))
}

/** True for loopback and link-local addresses, and those that stand for all. */
function isLocal(bytes: Uint8Array, family: number): boolean {
  if (bytes.every((octet) => octet === 0)) return true
  if (family === 1) return bytes[0] === 127 || (bytes[0] === 169 && bytes[1] === 254)
  const isLoopback = bytes.subarray(0, 15).every((octet) => octet === 0) && bytes[15] === 1
  return isLoopback || (bytes[0] === 0xfe && (bytes[1]! & 0xc0) === 0x80)
}
