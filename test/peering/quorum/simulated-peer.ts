import type { Logger } from '../../../src/base/telemetry/log.ts'
import type { Timers } from '../../../src/base/timers.ts'
import { PeerFollower } from '../../../src/peering/peer.ts'
import type { Generation, PeerEndpoint, SiteState } from '../../../src/peering/peer-endpoint.ts'
import type { SiteObservation } from '../../../src/peering/quorum/observation-codec.ts'

export const HOST = 'app.k.example.com'
export const IDLE: Timers = { after: () => () => {}, every: () => () => {} }

/** The network as a peer needs it. */
interface PeerNetwork {
  readonly nowS: number
  readonly generations: readonly Generation[]
}

/** What a poll of a peer received. */
export interface Received {
  readonly endpoints: readonly PeerEndpoint[]
  readonly observations: readonly SiteObservation[]
}

export interface Sent {
  readonly received: Received
  readonly atS: number
}

/** A peer as one site follows it. */
export class SimulatedPeer extends PeerFollower {
  readonly number: number
  readonly #network: PeerNetwork
  readonly #generation: Generation
  received: Received | undefined
  heardMs = Number.NEGATIVE_INFINITY
  pollS = 0
  failures = 0
  /** An answer on its way, and when it comes. */
  answer: Sent | undefined
  #notify: (hosts: ReadonlySet<string>) => void = () => {}

  constructor(number: number, network: PeerNetwork, log: Logger) {
    const clock = { monotonic: () => network.nowS * 1000, now: () => 0 }
    const peer = { host: nameOf(number), port: 53 }
    super({ peer, clock, timers: IDLE, log, random: () => 0 })
    this.number = number
    this.#network = network
    this.#generation = network.generations[number]!
  }

  override get lastSeenMs(): number {
    return this.heardMs
  }
  override get lastAnswerMs(): number {
    return this.heardMs
  }
  override get ownSite(): string {
    return this.received === undefined || this.#generation === 'v1' ? '' : nameOf(this.number)
  }
  override hosts(): ReadonlySet<string> {
    return new Set(this.received === undefined ? [] : [HOST])
  }
  override subscribe(listener: (hosts: ReadonlySet<string>) => void): () => void {
    this.#notify = listener
    return () => {}
  }
  override siteStatesOf(host: string): readonly SiteState[] {
    if (this.received === undefined || host !== HOST) return []
    const { endpoints } = this.received
    const [first] = endpoints
    if (first === undefined) return []
    const about = { site: first.site, exporter: this.address, isOwn: true, rootHost: HOST }
    return [{ ...about, endpoints, seenMs: this.heardMs, generation: this.#generation }]
  }
  override observationsOf(): readonly SiteObservation[] {
    return this.received?.observations ?? []
  }

  receive(received: Received): void {
    const isSame = JSON.stringify(received) === JSON.stringify(this.received)
    this.received = received
    this.heardMs = this.#network.nowS * 1000
    if (!isSame) this.#notify(new Set([HOST]))
  }
}

export function nameOf(number: number): string {
  return `site${number}`
}
