import { Random } from '../../../base/random.ts'
import { LocalChannel } from '../../../base/telemetry/local-channel.ts'
import type { AdminTraffic } from '../../../plugin/admin-traffic.ts'
import { COUNTS_TRAFFIC } from '../../../plugin/counts-traffic.ts'
import type { DirectivePart } from '../../../plugin/description.ts'
import type { SetupContext } from '../../../plugin/directive.ts'
import { addTap } from '../../../plugin/query-tap.ts'
import type { OpenTraffic } from './open-traffic.ts'
import { SAMPLE_OCTETS_MAX } from './sample.ts'
import { TrafficTap } from './traffic-tap.ts'

/** What counts the queries of all server blocks, and what it counted. */
export interface TrafficPart {
  readonly part: DirectivePart
  readonly traffic: AdminTraffic
}

/** Counts traffic, in every thread. Call it once per Corefile. */
export function countTraffic(c: SetupContext): TrafficPart {
  c.shared.provide(COUNTS_TRAFFIC, true)
  let open: OpenTraffic | undefined
  const slots = c.counters()
  const receive = (octets: Uint8Array): void => open?.receive(octets)
  const channel = c.octetsToControl(receive) ?? new LocalChannel(SAMPLE_OCTETS_MAX, receive)
  const random = new Random(Math.floor(c.random() * 2 ** 32))
  addTap(c.shared, new TrafficTap(c.clock, slots, channel, random))
  return {
    traffic: { report: (question) => open?.report(question) },
    part: {
      start: async () => {
        // Data threads do not need it.
        const { OpenTraffic } = await import('./open-traffic.ts')
        open = new OpenTraffic(c, slots)
      },
      stop: () => {
        open?.close()
        open = undefined
      },
    },
  }
}
