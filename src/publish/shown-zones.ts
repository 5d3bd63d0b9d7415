import type { ResourceRegistry } from '../base/resource-registry.ts'
import { EndpointLists } from '../base/telemetry/endpoint-lists.ts'
import type { Locator } from '../geo/locator.ts'
import { ExplainableIndex, explainableZones } from './explainable.ts'
import { PreviewIndex } from './preview/preview-index.ts'
import type { RecordPipeline } from './record-pipeline.ts'
import { RecordZoneIndex } from './record-zone-index.ts'
import type { OpenZones } from './serve/threaded-zones.ts'
import { listEndpoints } from './zone/endpoint-list.ts'
import type { PublishedZones } from './zone/zones.ts'

/**
 * In octets. An explanation parses files of this size in about 2 ms, which delays the thread that
 * publishes zones.
 */
const REREAD_MAX = 4096

/** Zones in force, and what explains them. */
interface ShownZones extends OpenZones {
  readonly resources: ResourceRegistry
  readonly place: string
  readonly locator: Locator | undefined
  readonly zones: PublishedZones
  readonly provenance: RecordPipeline['provenance']
}

type PreviewedZones = Parameters<PreviewIndex['add']>[0]

/**
 * Makes the names of zones known to the process, their answers explainable, and their endpoints readable for the admin
 * API. Returns the functions that end this.
 */
export function showZones(shown: ShownZones): (() => void)[] {
  const { resources, place, image, table, locator, zones, provenance } = shown
  const names = resources.acquire(RecordZoneIndex, '', () => new RecordZoneIndex())
  const explained = resources.acquire(ExplainableIndex, '', () => new ExplainableIndex())
  const lists = resources.acquire(EndpointLists, '', () => new EndpointLists())
  const { downReason: downReasons } = provenance
  return [
    explained.item.add(
      explainableZones({
        handle: image.handle,
        table,
        locator,
        zone: (key) => zones.zones.find((zone) => zone.key === key),
        ...provenance,
        rereadMax: REREAD_MAX,
      }),
    ),
    explained.release,
    names.item.add(() => zones.zones),
    names.release,
    lists.item.add(listEndpoints({ place, zones, downReasons })),
    lists.release,
  ]
}

/** Makes changes of zones previewable. Returns the functions that end this. */
export function offerPreviews(
  { resources, locator, zones }: ShownZones,
  previewed: Omit<PreviewedZones, 'locator' | 'zones'>,
): (() => void)[] {
  const index = resources.acquire(PreviewIndex, '', () => new PreviewIndex())
  return [index.item.add({ ...previewed, locator, zones: zones.zones }), index.release]
}
