import { RRType } from '../dns/iana/types.ts'
import { ALIASES_MAX } from '../dns/message/direct-answer.ts'
import { nameKey } from '../dns/name/name.ts'
import { scanAddress } from '../dns/text/address.ts'
import type { Endpoint } from '../records/dns-record.ts'
import { scanHost } from '../records/validate/names.ts'
import { WEIGHT_DEFAULT, WEIGHT_MAX } from '../steering/candidate.ts'

/** The full weight during slow start; an address that has just recovered has weight 1. */
export const SLOW_START_UNITS = 20

/** An address, or host name, that was down and has not reached its full weight yet. */
export interface SlowStartUnits {
  readonly address: string
  /** 1..SLOW_START_UNITS - 1. */
  readonly units: number
}

export const NO_SLOW_STARTS: readonly SlowStartUnits[] = []

/**
 * Returns the part of its weight that each endpoint of one record gets, in the order of
 * `endpoints`: 1..SLOW_START_UNITS. An endpoint has the maximum of its targets that are up, because
 * targets that were never down can serve all its clients. A CNAME has the value of its target in
 * the same record. `down`: result of `findDownTargets`; undefined = no target is down.
 */
export function findSlowStartUnits(
  endpoints: readonly Endpoint[],
  slowStart: readonly SlowStartUnits[],
  down: readonly ReadonlySet<number>[] | undefined,
): readonly number[] {
  const addresses = new Map<string, number>()
  const hosts = new Map<string, number>()
  for (const { address: text, units } of slowStart) {
    const address = scanAddress(text)
    const host = address === undefined ? scanHost(text) : undefined
    if (address !== undefined) addresses.set(printOctets(address.bytes), units)
    if (host !== undefined) hosts.set(nameKey(host), units)
  }
  let names: ReadonlyMap<string, number> = hosts
  let units = endpoints.map((endpoint, i) => unitsOf(endpoint, down?.[i], addresses, names))
  for (let step = 0; step < ALIASES_MAX; step++) {
    names = new Map([...hosts, ...unitsOfOwners(endpoints, units)])
    const next = endpoints.map((endpoint, i) => unitsOf(endpoint, down?.[i], addresses, names))
    if (next.every((value, i) => value === units[i])) break
    units = next
  }
  return units
}

function unitsOf(
  endpoint: Endpoint,
  down: ReadonlySet<number> | undefined,
  addresses: ReadonlyMap<string, number>,
  names: ReadonlyMap<string, number>,
): number {
  const isAddress = endpoint.type === RRType.A || endpoint.type === RRType.AAAA
  if (!isAddress && endpoint.type !== RRType.CNAME) return SLOW_START_UNITS
  let best = 0
  for (const [index, rdata] of endpoint.rdata.entries()) {
    if (down?.has(index)) continue
    const key = printOctets(rdata)
    best = Math.max(best, (isAddress ? addresses.get(key) : names.get(key)) ?? SLOW_START_UNITS)
  }
  return best === 0 ? SLOW_START_UNITS : best
}

export function isSameSlowStart(
  a: readonly SlowStartUnits[],
  b: readonly SlowStartUnits[],
): boolean {
  return (
    a.length === b.length &&
    a.every(({ address, units }, i) => address === b[i]!.address && units === b[i]!.units)
  )
}

/** Returns the maximum over each owner's endpoints. */
function unitsOfOwners(
  endpoints: readonly Endpoint[],
  units: readonly number[],
): ReadonlyMap<string, number> {
  const best = new Map<string, number>()
  for (const [i, endpoint] of endpoints.entries()) {
    const owner = nameKey(endpoint.owner)
    best.set(owner, Math.max(best.get(owner) ?? 0, units[i]!))
  }
  return best
}

/**
 * Scales the weights of one set's endpoints while some are in slow start; `units` has the same
 * order. All weights are first multiplied as far as WEIGHT_MAX allows, so that small weights keep
 * their proportions. A weight above 0 never becomes 0, because 0 would make the endpoint a standby.
 * Sets without weights are not changed.
 */
export function scaleWeights(
  weights: readonly (number | undefined)[],
  units: readonly number[],
): readonly (number | undefined)[] {
  const isWeighted = weights.some((weight) => weight !== undefined)
  if (!isWeighted || units.every((value) => value === SLOW_START_UNITS)) return weights
  const full = weights.map((weight) => weight ?? WEIGHT_DEFAULT)
  const factor = Math.min(SLOW_START_UNITS, Math.floor(WEIGHT_MAX / Math.max(1, ...full)))
  return full.map((weight, i) => {
    const scaled = Math.round((weight * factor * units[i]!) / SLOW_START_UNITS)
    return weight === 0 ? 0 : Math.max(1, scaled)
  })
}

/**
 * The part of a weight that counts in slow start, in the unit of the weight. `weight`: undefined = the
 * endpoint has none, although others of its set have one.
 */
export function slowStartWeight(weight: number | undefined, units = SLOW_START_UNITS): number {
  return ((weight ?? WEIGHT_DEFAULT) * units) / SLOW_START_UNITS
}

function printOctets(octets: Uint8Array): string {
  return Buffer.from(octets).toString('latin1')
}
