import { Random } from '../../src/base/random.ts'
import { Query } from '../../src/dns/message/query.ts'
import { Response } from '../../src/dns/message/response.ts'
import { scanAddress } from '../../src/dns/text/address.ts'
import { FlatClassTrie } from '../../src/geo/class-trie.ts'
import { buildClasses } from '../../src/geo/classes/build-classes.ts'
import { scanGeoCode } from '../../src/geo/code.ts'
import { UNKNOWN_LOCATION } from '../../src/geo/location.ts'
import type { Locator } from '../../src/geo/locator.ts'
import { type Net, scanNet } from '../../src/geo/net.ts'
import type { Candidate } from '../../src/steering/candidate.ts'
import { SteeringTable } from '../../src/steering/table.ts'
import { Choice } from '../../src/zone/image/types.ts'

/**
 * Clients of the ladder, each at its own network. `bottom` is at no place; the others add one rung
 * each, so that what is known of `top` is everything.
 */
export const CLIENTS = {
  nowhere: '10.9.0.1',
  continent: '10.1.0.1',
  country: '10.2.0.1',
  subdivision: '10.3.0.1',
  asn: '10.4.0.1',
  net: '10.5.0.1',
} as const

const NETS = [
  ...['10.1.0.0/16 GEO-NA', '10.2.0.0/16 US', '10.3.0.0/16 US-CA'],
  ...['10.4.0.0/16 US-CA AS64500', '10.5.0.0/16 US-CA AS64500 NET-OFFICE'],
].map((line) => scanNet(...(line.split(' ') as [string, ...string[]])) as Net)

/** A locator of nets alone; with `isSlow` its work ends when the test says so. */
export class NetLocator implements Locator {
  classified = 0
  isSlow = false
  readonly pending: (() => void)[] = []
  failure: Error | undefined
  #listener: () => void = () => {}

  locate() {
    return UNKNOWN_LOCATION
  }
  field() {
    return ''
  }
  async classify(codes: Parameters<Locator['classify']>[0]) {
    if (this.isSlow) await new Promise<void>((resolve) => this.pending.push(resolve))
    if (this.failure !== undefined) throw this.failure
    this.classified++
    return new FlatClassTrie(buildClasses({ databases: [], nets: NETS, codes }))
  }
  onChange(callback: () => void) {
    this.#listener = callback
    return () => {
      this.#listener = () => {}
    }
  }
  change(): void {
    this.#listener()
  }
}

export function createTable(locator: Locator | undefined = new NetLocator(), seed = 1) {
  const errors: string[] = []
  const random = new Random(seed)
  const table = new SteeringTable({ locator, random, onError: (reason) => errors.push(reason) })
  return { table, errors }
}

export interface Endpoint {
  readonly code?: string
  readonly isDefault?: boolean
  readonly weight?: number
  readonly ttl?: number
  readonly rdata?: readonly number[]
}

export function candidates(endpoints: readonly Endpoint[]): Candidate[] {
  return endpoints.map((endpoint, i) => ({
    code: endpoint.code === undefined ? undefined : scanGeoCode(endpoint.code)!,
    isDefault: endpoint.isDefault === true,
    weight: endpoint.weight,
    ttlSeconds: endpoint.ttl ?? 60,
    rdataIndexes: endpoint.rdata ?? [i],
  }))
}

const query = new Query()
export const response = new Response()
export const choice = new Choice()

export function choose(table: SteeringTable, words: Uint32Array, from: string, ecs = false) {
  const { bytes, family } = scanAddress(from)!
  query.clientAddress.set(bytes)
  query.clientFamily = family
  query.clientBits = bytes.length * 8
  query.clientIsEcs = ecs
  response.reset(query)
  steererOf(table).choose(query, response, arenaOf(words), ARENA_OFFSET, choice)
  // A cache must not give the choice to other clients.
  if (!response.isSteered) throw new Error('the response is not marked as steered')
  return [...choice.index.subarray(0, choice.count)]
}

/** Words lie somewhere in an arena. */
const ARENA_OFFSET = 3
const arenas = new WeakMap<Uint32Array, Uint32Array>()
function arenaOf(words: Uint32Array): Uint32Array {
  const arena = arenas.get(words) ?? new Uint32Array(words.length + ARENA_OFFSET).fill(7)
  if (!arenas.has(words)) arena.set(words, ARENA_OFFSET)
  arenas.set(words, arena)
  return arena
}

const steerers = new WeakMap<SteeringTable, ReturnType<SteeringTable['steerer']>>()
function steererOf(table: SteeringTable) {
  const steerer = steerers.get(table) ?? table.steerer()
  steerers.set(table, steerer)
  return steerer
}
