import { systemTimers } from '../../src/base/timers.ts'
import { scanName } from '../../src/dns/name/name.ts'
import { LOCATOR } from '../../src/geo/locator.ts'
import { NO_FALLTHROUGH } from '../../src/plugin/arguments/fallthrough.ts'
import type { Directive } from '../../src/plugin/directive.ts'
import { bind } from '../../src/plugins/bind/setup.ts'
import { geoip } from '../../src/plugins/geoip/setup.ts'
import { KuadrantHandler } from '../../src/plugins/kuadrant/kuadrant.ts'
import { AnswerEvents } from '../../src/publish/build/answer-events.ts'
import { NOTHING_KNOWN } from '../../src/publish/build/served-health.ts'
import { NO_PEERING, type PublishOptions } from '../../src/publish/options.ts'
import { ThreadedZones } from '../../src/publish/serve/threaded-zones.ts'
import { OfferedVersions } from '../../src/publish/zone/offered-versions.ts'
import { SerialIndex } from '../../src/publish/zone/serials/serial-index.ts'
import { PublishedZones } from '../../src/publish/zone/zones.ts'
import type { RecordChange, RecordSource } from '../../src/records/record-source.ts'
import { ZoneOwnership } from '../../src/sources/zone-ownership.ts'
import type { SteeringTable } from '../../src/steering/table.ts'
import { ZONE_VERSIONS } from '../../src/xfr/zone-versions.ts'
import { ZoneImage } from '../../src/zone/image/writer.ts'
import { ZONE } from './content.ts'

/** Small, so that compactions come by the dozen rather than one in a while. */
const IMAGE_SIZES = { initialOctets: 4096, compactOctets: 2 ** 16 }

/** The control thread's hold on the zone, once it serves. */
export interface Stage {
  readonly table: SteeringTable
  /** Buffers that took another's place. */
  compactions: number
  apply(changes: readonly RecordChange[]): void
}
export const stages: Stage[] = []

/** `kuadrant` without manifests: records come from `Stage.apply`. */
const stress: Directive = {
  name: 'stress',
  setup(c) {
    const position = c.dispenser.position()
    const options: PublishOptions = {
      zones: [scanName(ZONE)!],
      source: { kind: 'manifests', directory: '' },
      position,
      snapshot: undefined,
      serials: '',
      rname: '',
      nameservers: [],
      allowedNamespaces: undefined,
      site: '',
      peering: NO_PEERING,
    }
    const share = new ThreadedZones(c)
    const stops: (() => void)[] = []
    const start = async (): Promise<void> => {
      const { image, table } = share.open(
        c.block.shared.find(LOCATOR),
        undefined,
        new ZoneImage(IMAGE_SIZES),
      )
      share.serve({ image, table })
      const offered = c.block.shared.acquire(ZONE_VERSIONS)
      const zones = new PublishedZones(options, {
        image,
        table,
        health: { ...NOTHING_KNOWN, subscribe: () => () => {} },
        serials: new SerialIndex(),
        versions: new OfferedVersions(image, offered, offered.source()),
        events: new AnswerEvents({ source: '', others: undefined, find: () => undefined }),
        serialFile: undefined,
        place: 'stress',
        clock: c.clock,
        log: c.log,
        timers: systemTimers,
        onCommit: () => {},
      })
      const claims = new ZoneOwnership()
      claims.claim(options.zones)
      let listener: (changes: readonly RecordChange[]) => void = () => {}
      const source: RecordSource = {
        records: () => [],
        find: () => undefined,
        recordCount: 0,
        problems: () => [],
        unreadyReason: () => '',
        subscribe: (given) => {
          listener = given
          return () => {}
        },
      }
      stops.push(await zones.follow(source, claims))
      const stage: Stage = { table, compactions: 0, apply: (changes) => listener(changes) }
      image.onSwap(() => stage.compactions++)
      stages.push(stage)
      stops.push(() => table.close())
    }
    return {
      handler: (next) => new KuadrantHandler(next, share, NO_FALLTHROUGH),
      start,
      stop: () => {
        for (const stop of stops) stop()
      },
    }
  },
}

export const DIRECTIVES: readonly Directive[] = [bind, geoip, stress]
