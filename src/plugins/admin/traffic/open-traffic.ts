import type { Clock } from '../../../base/clock.ts'
import { InputError } from '../../../base/errors.ts'
import { Random } from '../../../base/random.ts'
import { printType, scanType } from '../../../dns/iana/types.ts'
import { lowerName, printName, scanName } from '../../../dns/name/name.ts'
import type {
  EndpointTraffic,
  TrafficQuestion,
  TrafficReport,
} from '../../../plugin/admin-traffic.ts'
import type { CounterSlots } from '../../../plugin/counter-slots.ts'
import type { SetupContext } from '../../../plugin/directive.ts'
import { SERVER_COUNTERS } from '../../../plugin/server-counters.ts'
import { type CountedEndpoint, EndpointAnswers } from '../../../publish/zone/endpoint-answers.ts'
import { PERIOD_MS, Traffic } from './traffic.ts'

/** Endpoints that a report lists. */
const ENDPOINTS_MAX = 1000
const COLLECT_MS = 10_000

/** The traffic as one instance counts and reports it. */
export class OpenTraffic {
  readonly #clock: Clock
  readonly #traffic: Traffic
  readonly #endpoints: EndpointAnswers
  readonly #releases: (() => void)[]

  /** `slots`: the counters of the instance. */
  constructor({ clock, timers, random, resources, shared }: SetupContext, slots: CounterSlots) {
    const traffic = resources.acquire(Traffic, '', () => {
      const server = shared.find(SERVER_COUNTERS)!
      return new Traffic({ clock, random: new Random(Math.floor(random() * 2 ** 32)), server })
    })
    const endpoints = resources.acquire(EndpointAnswers, '', () => new EndpointAnswers())
    this.#clock = clock
    this.#traffic = traffic.item
    this.#endpoints = endpoints.item
    const stopTimer = timers.every(COLLECT_MS, () => this.#collect())
    const leave = traffic.item.include(slots)
    this.#releases = [stopTimer, leave, traffic.release, endpoints.release]
  }

  /** Accepts samples of threads. */
  receive(octets: Uint8Array): void {
    this.#traffic.receive(octets)
  }

  /** Throws InputError if the question is invalid. */
  report({ period, name, type = 'A' }: TrafficQuestion): TrafficReport {
    const owner = name === undefined ? undefined : readName(name)
    const number = scanType(type)
    if (number === undefined) throw new InputError(undefined, `type: unknown type ${type}`)
    this.#collect()
    const found =
      owner === undefined ? [] : this.#endpoints.read(owner, printType(number), PERIOD_MS[period])
    const endpoints = withShares(found).sort((a, b) => b.answers - a.answers || b.share - a.share)
    return {
      ...this.#traffic.report(period),
      endpoints: endpoints.slice(0, ENDPOINTS_MAX),
      endpointsOmitted: Math.max(0, endpoints.length - ENDPOINTS_MAX),
    }
  }

  close(): void {
    for (const release of this.#releases) release()
  }

  #collect(): void {
    this.#traffic.collect()
    this.#endpoints.collect(this.#clock.monotonic())
  }
}

function readName(text: string): string {
  const name = scanName(text.endsWith('.') ? text : `${text}.`)
  if (name === undefined) throw new InputError(undefined, 'name: not a domain name')
  return printName(lowerName(name))
}

function withShares(all: readonly CountedEndpoint[]): EndpointTraffic[] {
  const tierOf = ({ labels: { source, zone, tier } }: CountedEndpoint): string => {
    return JSON.stringify([source, zone, tier])
  }
  const answersOf = new Map<string, number>()
  for (const one of all) {
    const tier = tierOf(one)
    answersOf.set(tier, (answersOf.get(tier) ?? 0) + one.answers)
  }
  return all.map((one) => {
    const { labels, share, weight, answers } = one
    const { zone, endpoint, tier } = labels
    const ofTier = answersOf.get(tierOf(one))!
    const answeredShare = ofTier === 0 ? null : answers / ofTier
    return { zone, endpoint, tier, weight: weight ?? null, share, answers, answeredShare }
  })
}
