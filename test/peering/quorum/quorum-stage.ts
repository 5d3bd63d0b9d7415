import { createLogger } from '../../../src/base/telemetry/log.ts'
import type { HealthObservation } from '../../../src/health/address-health.ts'
import type { EndpointHealth, SiteState } from '../../../src/peering/peer-endpoint.ts'
import { HealthQuorum, type HealthQuorumParts } from '../../../src/peering/quorum/health-quorum.ts'
import type { SiteObservation } from '../../../src/peering/quorum/observation-codec.ts'
import { QuorumMemory } from '../../../src/peering/quorum/quorum-memory.ts'
import { endpoint } from '../../support/peer-text.ts'
import { FakeClock } from '../../support/setup.ts'

export const HOST = 'app.k.example.com'
export const ADDRESS = '192.0.2.9'

/** A peer that the test fills. */
export class ToyPeer {
  readonly address: string
  readonly ownSite: string
  lastAnswerMs = 0
  observed: readonly SiteObservation[] = []

  get observationCount(): number {
    return this.observed.length
  }

  constructor(ownSite: string) {
    this.ownSite = ownSite
    this.address = `${ownSite}:53`
  }

  observationsOf(): readonly SiteObservation[] {
    return this.observed
  }
}

/** The quorum of the site berlin, whose peers are paris and rome. */
export function setUp(parts: Partial<HealthQuorumParts> = {}) {
  const clock = new FakeClock()
  const lines: string[] = []
  const watched = new Map<string, readonly string[]>()
  const [paris, rome] = [new ToyPeer('paris'), new ToyPeer('rome')]
  const given: HealthQuorumParts = {
    site: 'berlin',
    peers: [paris, rome],
    quorum: 0,
    holdDownMs: 0,
    memory: new QuorumMemory(clock),
    observer: {
      watch: (key, leaves) =>
        watched.set(
          key,
          leaves.map(({ address }) => address),
        ),
      close: () => watched.clear(),
    },
    clock,
    log: createLogger(
      '',
      (line) => lines.push(line),
      () => false,
    ),
    ...parts,
  }
  for (const peer of [paris, rome]) peer.lastAnswerMs = clock.monotonicMs
  const quorum = new HealthQuorum(given)
  const found = (site: string, health: 'up' | 'down', address = ADDRESS): SiteObservation => {
    return { site, address, health, sinceSeconds: Math.floor(clock.nowMs / 1000) }
  }
  /** What is decided about the addresses of rome: those that are down. */
  const settle = (
    observed: readonly HealthObservation[],
    health: EndpointHealth = 'up',
    targets = [ADDRESS],
    by = quorum,
  ): string => {
    const rootHost = HOST
    const about = { rootHost, exporter: rome.address, isOwn: true, generation: 'v2' } as const
    const siteStates: SiteState[] = [
      {
        site: 'rome',
        seenMs: rome.lastAnswerMs,
        endpoints: [endpoint({ site: 'rome', health, targets })],
        ...about,
      },
    ]
    const facts = {
      own: [endpoint()],
      ownFindings: new Map(),
      checkedKey: 'default/app',
      observed,
      siteStates,
    }
    const { decisions } = by.settle({ host: HOST, ...facts })
    const down = [...decisions].filter(([, { outcome }]) => outcome === 'down')
    return down.map(([address, { reason }]) => `${address}: ${reason}`).join('; ')
  }
  const pass = (milliseconds: number): void => {
    clock.pass(milliseconds)
    quorum.check()
  }
  /** What is reported of the address of rome. */
  const inspect = (observed: readonly HealthObservation[]) => {
    const about = { rootHost: HOST, exporter: rome.address, isOwn: true, generation: 'v2' } as const
    const endpoints = [endpoint({ site: 'rome', health: 'up', targets: [ADDRESS] })]
    const siteStates = [{ site: 'rome', seenMs: rome.lastAnswerMs, endpoints, ...about }]
    const own = { own: [endpoint()], ownFindings: new Map(), checkedKey: 'default/app' }
    return quorum.inspect({ host: HOST, ...own, observed, siteStates })
  }
  return { inspect, clock, quorum, given, paris, rome, lines, watched, found, settle, pass }
}
