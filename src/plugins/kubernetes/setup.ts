import { readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { ClusterHandler } from '../../authority/cluster/cluster-handler.ts'
import { type ClusterNames, serveCluster } from '../../authority/cluster/serve-cluster.ts'
import { CLUSTER, type ServedCluster } from '../../authority/cluster/served-cluster.ts'
import { ThreadedImage } from '../../authority/cluster/threaded-image.ts'
import { Random } from '../../base/random.ts'
import { isSystemError } from '../../base/system-error.ts'
import { systemTimers } from '../../base/timers.ts'
import { scanResolvConf } from '../../dns/resolv-conf.ts'
import { type Address, scanAddress } from '../../dns/text/address.ts'
import { isReverseZone } from '../../dns/text/reverse-name.ts'
import { acquireAt, faultsOfAccess } from '../../kube/cluster-access.ts'
import type { DirectivePart } from '../../plugin/description.ts'
import type { BlockConfig, Directive, SetupContext } from '../../plugin/directive.ts'
import type { Handler } from '../../plugin/handler.ts'
import { SEARCH_PATHS } from '../../plugin/search-paths.ts'
import { ZoneSet } from '../../zone/lookup/zone-set.ts'
import { type KubernetesOptions, scanOptions } from './options.ts'
import { PodNames } from './pod-names.ts'
import { PodSearchPaths } from './pod-search-paths.ts'

const RESOLV_CONF = '/etc/resolv.conf'
/** As in CoreDNS. */
const SOA_TTL_SECONDS_MAX = 300

/** `kubernetes [ZONES...] { … }`: names of the Services and Pods of a cluster. */
export const kubernetes: Directive = {
  name: 'kubernetes',
  setup: (c) => {
    const options = scanOptions(c.dispenser, c.block)
    const { zones, fallthrough, ttlSeconds } = options
    const image = new ThreadedImage(c)
    const handler = (next: Handler): Handler => {
      const answering = new ClusterHandler(next, { name: 'kubernetes', image, zones, fallthrough })
      if (options.pods !== 'insecure') return answering
      const named = zones.filter((zone) => !isReverseZone(zone))
      return new PodNames(answering, image, named, ttlSeconds)
    }
    const searching = offerSearchPaths(c, options, image)
    const cluster = servedCluster(c, options)
    c.block.shared.provide(CLUSTER, cluster)
    return [
      { handler, answers: true },
      searching,
      { check: async ({ isOffline }) => (isOffline ? [] : faultsOfAccess(options)) },
      serveCluster(c, image, namesOf(c, options), () => cluster),
    ]
  },
}

/** Offers the search paths of Pods to `autopath`. */
function offerSearchPaths(
  c: SetupContext,
  { zones, pods }: KubernetesOptions,
  image: ThreadedImage,
): DirectivePart {
  if (!c.block.directives.includes('autopath')) return {}
  const paths = new PodSearchPaths(image, new ZoneSet(zones), pods === 'verified')
  c.block.shared.acquire(SEARCH_PATHS).set('kubernetes', paths)
  const follow = (host: readonly Uint8Array[]): void => {
    paths.host = host
  }
  const broadcast = c.broadcast<readonly Uint8Array[]>(follow)
  const start = (): void => {
    const host = [...readHostSearchPath(), Uint8Array.of(0)]
    follow(host)
    broadcast.publish(host)
  }
  return { start }
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

/** The names that `options` select. */
function namesOf(
  { metrics }: SetupContext,
  { zones, ttlSeconds, ignoresEmpty, pods }: KubernetesOptions,
): ClusterNames {
  return {
    zones,
    ttlSeconds,
    soaTtlSeconds: Math.min(ttlSeconds, SOA_TTL_SECONDS_MAX),
    key: `kubernetes ${JSON.stringify([ignoresEmpty, pods])}`,
    load: async ({ podNames }) => {
      const { internalScheme } = await import('../../authority/cluster/name-scheme.ts')
      const { programmingDurations } = await import('./metrics.ts')
      const durations = programmingDurations(metrics)
      const labels = { service_kind: 'headless_with_selector' }
      const onProgrammed = (seconds: number): void => durations.observe(labels, seconds)
      return { scheme: internalScheme({ podNames, ignoresEmpty, pods }), onProgrammed }
    },
  }
}

/** The cluster that `options` name, for all directives of the block. */
function servedCluster(c: SetupContext, options: KubernetesOptions): ServedCluster {
  const { podNames, startupMs, namespaces, namespaceLabels, labels } = options
  const { readsEndpoints, pods } = options
  const readsPods = pods === 'verified'
  const scope = { namespaces, namespaceLabels, labels, readsEndpoints, readsPods }
  const acquire = async () => {
    const { ClusterWatch } = await import('../../authority/cluster/cluster-watch.ts')
    const { MeasuredClient } = await import('./metrics.ts')
    return acquireAt(options, c, {
      type: ClusterWatch,
      options: scope,
      create: (api) => {
        const { log, clock, metrics } = c
        const random = new Random(Math.trunc(Math.random() * 2 ** 32))
        const measured = new MeasuredClient(api, clock, metrics)
        return new ClusterWatch({ scope, api: measured, log, clock, timers: systemTimers, random })
      },
    })
  }
  return { podNames, startupMs, ownAddresses: () => ownAddresses(c.block), acquire }
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
