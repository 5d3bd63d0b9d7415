import type { SetupContext } from '../../plugin/directive.ts'
import type { BlockPeers } from '../../publish/peers.ts'
import type { KuadrantBlocks } from '../../publish/publisher-group.ts'
import type { ThreadedZones } from '../../publish/threaded-zones.ts'
import type { KuadrantService } from '../../publish/zone-publisher.ts'
import { placeOf } from './block-place.ts'
import type { KuadrantOptions } from './options.ts'

/**
 * Starts the block's service when the instance starts. The modules that fill its zones (sources,
 * peers, probes) are loaded only then: data threads and `sextant check` do not need them.
 */
export function prepareService(
  c: SetupContext,
  options: KuadrantOptions,
  share: ThreadedZones,
  blocks: KuadrantBlocks,
): void {
  let service: KuadrantService | undefined
  let isOver = false
  // Call it here, in the order of the chain: if two directives have the same zone, the first one counts.
  const versions = c.block.zoneVersions.source()
  // The first block that starts makes all blocks claim their zones.
  const load = async (): Promise<KuadrantService> => {
    const { KuadrantService } = await import('../../publish/zone-publisher.ts')
    const peers = await loadPeers(c, options)
    service ??= new KuadrantService(c, options, { share, versions, peers })
    return service
  }
  blocks.add({
    options,
    place: () => placeOf(c.block),
    claim: async () => {
      const loaded = await load()
      // After the instance stopped, nothing would release what this call acquires.
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

/** Loads the module that queries peers. Returns undefined, and loads nothing, if the block has no peers. */
async function loadPeers(
  c: SetupContext,
  options: KuadrantOptions,
): Promise<BlockPeers | undefined> {
  if (options.peering.peers.length === 0) return undefined
  const { BlockPeers } = await import('../../publish/peers.ts')
  return new BlockPeers(c, options)
}
