import type { ResourceRegistry } from '../../base/resource-registry.ts'
import { nameKey } from '../../dns/name/name.ts'
import type { TierKey } from '../../steering/tier-key.ts'
import type { ZoneImage } from '../../zone/image/writer.ts'
import type { PublishOptions } from '../options.ts'
import type { ContentSerial } from '../zone/serials/serial-index.ts'
import type { PublishedZones } from '../zone/zones.ts'
import type { OpenZones } from './threaded-zones.ts'

/** Most turns of the event loop that a reload waits for changes that are being published. */
const TURNS_MAX = 1000

/** Signed zones in force. */
interface SignedImage extends OpenZones {
  readonly zones: PublishedZones
}

/** A copy of zones in force, and what is known about it. */
interface InheritedZones {
  readonly image: ZoneImage
  readonly policies: readonly (readonly TierKey[])[]
  readonly earlier: readonly ContentSerial[]
}

/** The images of this process that have signed zones: after a reload, the signatures are used again. */
export class SignedImages {
  readonly #images = new Set<SignedImage>()

  add(image: SignedImage): () => void {
    this.#images.add(image)
    return () => this.#images.delete(image)
  }

  /** The image with the zone `key` that came into force last. */
  find(key: string): SignedImage | undefined {
    return [...this.#images].findLast(({ zones }) => zones.zones.some((zone) => zone.key === key))
  }
}

/** Copies the zones in force that `options` has, too, if they are signed; undefined = there are none. */
export async function inheritZones(
  resources: ResourceRegistry,
  { signed, zones }: PublishOptions,
): Promise<InheritedZones | undefined> {
  const images = resources.find(SignedImages, '')
  const keys = [...(signed?.keys() ?? [])]
  const from = keys.map((key) => images?.find(key)).find((image) => image !== undefined)
  if (from === undefined) return undefined
  for (let turn = 0; !from.image.isPublished; turn++) {
    if (turn === TURNS_MAX) return undefined
    await new Promise((resolve) => setImmediate(resolve))
  }
  const image = from.image.copy()
  const wanted = new Set(zones.map((zone) => nameKey(zone)))
  for (const { apex, key } of from.zones.zones) {
    const id = image.findZone(apex)
    if (id !== undefined && !wanted.has(key)) image.removeZone(id)
  }
  image.publish()
  return { image, policies: from.table.policies, earlier: from.zones.facts }
}
