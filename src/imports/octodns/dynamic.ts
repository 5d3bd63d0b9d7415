import { scanCidr } from '../../dns/text/address.ts'
import {
  type FieldPlace,
  field,
  isMapping,
  mappingField,
  quote,
  RefusedError,
  scalarField,
  sequenceField,
  stringField,
} from '../../records/validate/fields.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import type { NetClasses } from '../net-classes.ts'
import { geoCodeOf } from './geo.ts'
import { targetOf } from './values.ts'

type Mapping = { readonly [key: string]: YamlValue }

interface PoolValue {
  readonly target: string
  readonly weight: number
  /** `obey`, `up` or `down`. */
  readonly status: string
  readonly place: FieldPlace
}

/** A pool, and the clients that the rules give it. */
export interface Pool {
  readonly name: string
  readonly values: readonly PoolValue[]
  /** '' = none. */
  readonly fallback: string
  readonly place: FieldPlace
  readonly geoCodes: string[]
  /** True if a rule gives it networks. */
  hasNets: boolean
  isDefault: boolean
}

/**
 * Reads `dynamic` of a record: its pools, by name, with the rules applied. The first rule that matches a client
 * decides, and octoDNS demands the most specific one first: that is the order of the GEO ladder. Throws RefusedError.
 */
export function readDynamic(
  dynamic: Mapping,
  { type, map, nets }: { readonly type: string; readonly map: string; readonly nets: NetClasses },
  place: FieldPlace,
): ReadonlyMap<string, Pool> {
  const pools = new Map<string, Pool>()
  const given = mappingField(dynamic, 'pools', place)
  for (const name of Object.keys(given)) {
    pools.set(name, readPool(name, given, type, place.at('pools')))
  }
  const rules = sequenceField(dynamic, 'rules', place)
  for (const [index, rule] of rules.entries()) {
    const at = place.at('rules').at(index)
    if (!isMapping(rule)) throw new RefusedError(at, 'a rule must be a mapping')
    const name = stringField(rule, 'pool', at)
    const pool = pools.get(name)
    if (pool === undefined) throw new RefusedError(at.at('pool'), `no pool ${quote(name)}`)
    applyRule(rule, pool, at)
    defineNets(rule, pool, map, nets, at)
  }
  for (const { fallback, place: at } of pools.values()) {
    if (fallback !== '' && !pools.has(fallback))
      throw new RefusedError(at.at('fallback'), `no pool ${quote(fallback)}`)
  }
  return pools
}

function readPool(name: string, pools: Mapping, type: string, place: FieldPlace): Pool {
  const at = place.at(name)
  const pool = mappingField(pools, name, place)
  const values = sequenceField(pool, 'values', at).map((value, index): PoolValue => {
    const here = at.at('values').at(index)
    if (!isMapping(value)) throw new RefusedError(here, 'a value of a pool must be a mapping')
    const weight = scalarField(value, 'weight', here) || '1'
    if (!/^\d{1,9}$/.test(weight)) {
      throw new RefusedError(here.at('weight'), `weight must be a number, got ${quote(weight)}`)
    }
    const target = targetOf(type, field(value, 'value') ?? null, here.at('value'))
    const status = stringField(value, 'status', here) || 'obey'
    return { target, weight: Number(weight), status, place: here.at('status') }
  })
  const fallback = stringField(pool, 'fallback', at)
  return { name, values, fallback, place: at, geoCodes: [], hasNets: false, isDefault: false }
}

function applyRule(rule: Mapping, pool: Pool, place: FieldPlace): void {
  const geos = sequenceField(rule, 'geos', place)
  for (const [index, geo] of geos.entries()) {
    const at = place.at('geos').at(index)
    if (typeof geo !== 'string') throw new RefusedError(at, 'a geo code must be a string')
    const code = geoCodeOf(geo, at)
    if (!pool.geoCodes.includes(code)) pool.geoCodes.push(code)
  }
  if (geos.length === 0 && sequenceField(rule, 'subnets', place).length === 0) pool.isDefault = true
}

function defineNets(
  rule: Mapping,
  pool: Pool,
  map: string,
  nets: NetClasses,
  place: FieldPlace,
): void {
  for (const [index, subnet] of sequenceField(rule, 'subnets', place).entries()) {
    const at = place.at('subnets').at(index)
    const cidr = typeof subnet === 'string' ? scanCidr(subnet) : undefined
    if (cidr === undefined)
      throw new RefusedError(at, 'a subnet must be a network, as 192.0.2.0/24')
    nets.define(map, cidr, pool.name, map)
    pool.hasNets = true
  }
}

/** Returns the names of the pools that serve in place of a pool, in order. A loop ends. */
export function fallbacksOf(pool: Pool, pools: ReadonlyMap<string, Pool>): readonly Pool[] {
  const found = [pool]
  for (let next = pools.get(pool.fallback); next !== undefined; next = pools.get(next.fallback)) {
    if (found.includes(next)) break
    found.push(next)
  }
  return found.slice(1)
}
