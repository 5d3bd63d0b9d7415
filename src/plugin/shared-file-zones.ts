import { ZoneReader } from '../zone/image/reader.ts'
import type { ZoneAnswerer } from '../zone/lookup/answer.ts'
import type { SetupContext } from './directive.ts'
import type { Feed } from './feed.ts'
import { answererOf, type FileZone, type SharedVersion } from './file-zone.ts'
import { FileZoneTable } from './file-zones.ts'

/** A zone on its way to other threads. */
interface SharedZone {
  readonly zone: Uint8Array
  readonly shared: SharedVersion | undefined
}

/** The zones of one directive in every thread: the control thread loads them, the others read the same images. */
export class SharedFileZones {
  readonly table = new FileZoneTable()
  readonly #feed: Feed<readonly SharedZone[]>
  /** What was published last, as text: versions, in order. */
  #published = ''
  /** In other threads: who answers from which version. */
  #answerers: ReadonlyMap<number, ZoneAnswerer> = new Map()

  /** See `FileZoneOptions`: the directive `minimal` would only take it away again. */
  readonly nsInAuthority: boolean

  constructor(c: SetupContext) {
    this.nsInAuthority = !c.block.directives.includes('minimal')
    this.#feed = c.feed<readonly SharedZone[]>((zones) => this.#follow(zones))
  }

  /** On the control thread, whenever there may be other zones or versions: puts them in force everywhere. */
  publish(zones: readonly FileZone[]): void {
    const published = zones.map(({ zoneText, shared }) => `${zoneText} ${shared?.version}`).join()
    if (published === this.#published) return
    this.#published = published
    this.table.replace(zones)
    this.#feed.publish(zones.map(({ zone, shared }) => ({ zone, shared })))
  }

  #follow(zones: readonly SharedZone[]): void {
    const answerers = new Map<number, ZoneAnswerer>()
    const served = zones.map(({ zone, shared }) => {
      if (shared === undefined) return { zone, answerer: undefined }
      const { version, buffer } = shared
      const answerer =
        this.#answerers.get(version) ?? answererOf(new ZoneReader({ buffer }), this.nsInAuthority)
      answerers.set(version, answerer)
      return { zone, answerer }
    })
    this.#answerers = answerers
    this.table.replace(served)
  }
}
