import { LOCATOR } from '../../geo/locator.ts'
import { ownAddress } from '../../plugin/arguments/endpoint.ts'
import { placeOf } from '../../plugin/block-place.ts'
import type { DirectivePart, OfflineLoad } from '../../plugin/description.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import { OFFLINE_PLACE, type OfflineService } from '../../publish/offline/offline-block.ts'
import type { ZonePublisher, ZonePublisherParts } from '../../publish/zone-publisher.ts'
import { ZONE_VERSIONS } from '../../xfr/zone-versions.ts'
import type { KuadrantOptions } from './options.ts'

type BlockParts = Pick<ZonePublisherParts, 'threads' | 'group' | 'counts'>

/**
 * Returns the part that publishes the block's zones from the start of the instance to its end. The
 * modules that fill the zones (sources, peers, probes) are loaded only then: data threads and
 * `sextant check` do not need them.
 */
export function prepareService(
  c: SetupContext,
  options: KuadrantOptions,
  { threads, group, counts }: BlockParts,
): DirectivePart {
  const { block } = c
  const zoneVersions = block.shared.acquire(ZONE_VERSIONS)
  let publisher: ZonePublisher | undefined
  let isOver = false
  // Call it here, in the order of the chain: if two directives have the same zone, the first one counts.
  const versions = zoneVersions.source()
  // The first block that starts makes all blocks claim their zones.
  const load = async (): Promise<ZonePublisher> => {
    const { ZonePublisher } = await import('../../publish/zone-publisher.ts')
    const { resources, log, clock, metrics } = c
    const { listenHosts } = block
    const locator = block.shared.find(LOCATOR)
    const sourceFor = (host: string): string => ownAddress(host, block)
    const data = { threads, counts, locator, zoneVersions, versions }
    const parts = { group, place: placeOf(block), ...data }
    const process = { resources, log, clock, metrics, listenHosts, sourceFor }
    publisher ??= new ZonePublisher(options, { ...parts, ...process })
    return publisher
  }
  group.add({
    options,
    place: () => placeOf(block),
    claim: async () => {
      const loaded = await load()
      // After the instance stopped, nothing would release what this call acquires.
      if (!isOver) await loaded.claim()
    },
    stopFollowing: () => publisher?.stopFollowing(),
    serves: () => publisher?.serves === true,
    notify: (host) => publisher?.notify(host),
  })
  const offline = async ({ shared }: OfflineLoad): Promise<void> => {
    const { records, blocks } = shared.find(OFFLINE_PLACE)!
    const { OfflineZones } = await import('../../publish/offline/offline-zones.ts')
    const zones = new OfflineZones(options, () => group.options, records)
    const serve = async (): Promise<OfflineService> => {
      const open = threads.open(block.shared.find(LOCATOR))
      const filled = await zones.fillImage(open)
      threads.serve(open)
      return { ...open, zones: filled }
    }
    blocks.push({ block, zones, serve })
  }
  return {
    ready: () => publisher?.unreadyReason() ?? 'records are not loaded yet',
    note: () => publisher?.note() ?? '',
    problems: () => publisher?.problemGroups() ?? [],
    status: () => publisher?.status() ?? {},
    start: async () => (await load()).start(),
    offline,
    exit: () => publisher?.finish(),
    stop: async () => {
      isOver = true
      await publisher?.stop()
    },
  }
}
