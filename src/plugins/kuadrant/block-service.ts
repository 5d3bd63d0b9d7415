import type { SetupContext } from '../../plugin/directive.ts'
import { placeOf } from './block-place.ts'
import type { KuadrantBlocks } from './kuadrant-blocks.ts'
import type { KuadrantOptions } from './options.ts'
import type { BlockPeers } from './peers.ts'
import type { KuadrantService } from './service.ts'
import type { ThreadedZones } from './threaded-zones.ts'

/**
 * Has a block go into service when the instance starts. All that makes its zones (sources, peers, probes) is loaded then:
 * data threads and `sextant check` do without.
 */
export function prepareService(
  c: SetupContext,
  options: KuadrantOptions,
  share: ThreadedZones,
  blocks: KuadrantBlocks,
): void {
  let service: KuadrantService | undefined
  let isOver = false
  // Now, in the order of the chain: of two directives with one zone the first counts.
  const versions = c.block.zoneVersions.source()
  // The first block that starts has all of them claim their zones.
  const load = async (): Promise<KuadrantService> => {
    const { KuadrantService } = await import('./service.ts')
    const peers = await loadPeers(c, options)
    service ??= new KuadrantService(c, options, { share, versions, peers })
    return service
  }
  blocks.add({
    options,
    place: () => placeOf(c.block),
    claim: async () => {
      const loaded = await load()
      // What an instance that is over got hold of now would never be given back.
      if (!isOver) await loaded.claim()
    },
    stopFollowing: () => service?.stopFollowing(),
    serves: () => service?.serves === true,
    notify: (host) => service?.notify(host),
  })
  c.onReady(
    () => service?.unreadyReason() ?? 'records are not loaded yet',
    () => service?.note() ?? '',
  )
  c.onStartup(async () => (await load()).start())
  c.onFinalShutdown(() => service?.finish())
  c.onShutdown(async () => {
    isOver = true
    await service?.stop()
  })
}

/** Undefined where the block has no peers: then what asks them is not loaded either. */
async function loadPeers(
  c: SetupContext,
  options: KuadrantOptions,
): Promise<BlockPeers | undefined> {
  if (options.peering.peers.length === 0) return undefined
  const { BlockPeers } = await import('./peers.ts')
  return new BlockPeers(c, options)
}
