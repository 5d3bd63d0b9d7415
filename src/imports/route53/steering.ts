import { didYouMean } from '../../base/nearest.ts'
import { pointOf, scanPoint } from '../../geo/point.ts'
import { AWS_REGIONS, locationOfAwsRegion } from '../../records/aws-regions.ts'
import {
  type FieldPlace,
  field,
  mappingField,
  quote,
  RefusedError,
  scalarField,
  stringField,
} from '../../records/validate/fields.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'

type Mapping = { readonly [key: string]: YamlValue }

/** Which clients get a record set. */
export interface Routing {
  readonly weight?: number
  readonly geoCodes?: readonly string[]
  readonly isDefault?: boolean
  readonly location?: string
  /** What acts in another way, by the field. */
  readonly notes: readonly (readonly [field: string, message: string])[]
}

/** Reads the routing policy of a record set: at most one. `place`: of the set. Throws RefusedError. */
export function readRouting(set: Mapping, place: FieldPlace): Routing {
  if (field(set, 'Weight') !== undefined) return { weight: scanWeight(set, place), notes: [] }
  const failover = stringField(set, 'Failover', place)
  if (failover !== '') return { weight: scanFailover(failover, place), notes: [] }
  if (field(set, 'GeoLocation') !== undefined) {
    return readGeolocation(mappingField(set, 'GeoLocation', place), place.at('GeoLocation'))
  }
  const region = stringField(set, 'Region', place)
  if (region !== '') return { location: locate(region, place.at('Region')), notes: [] }
  if (field(set, 'GeoProximityLocation') !== undefined) {
    const at = place.at('GeoProximityLocation')
    return readGeoproximity(mappingField(set, 'GeoProximityLocation', place), at)
  }
  if (field(set, 'CidrRoutingConfig') !== undefined) {
    const at = place.at('CidrRoutingConfig')
    return readNetworks(mappingField(set, 'CidrRoutingConfig', place), at)
  }
  return { notes: [] }
}

function scanWeight(set: Mapping, place: FieldPlace): number {
  const text = scalarField(set, 'Weight', place)
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new RefusedError(place.at('Weight'), `Weight must be a number, got ${quote(text)}`)
}

/** A standby has weight 0: it serves when no other endpoint is up. */
function scanFailover(text: string, place: FieldPlace): number {
  if (text === 'PRIMARY') return 1
  if (text === 'SECONDARY') return 0
  const message = `Failover must be PRIMARY or SECONDARY, got ${quote(text)}`
  throw new RefusedError(place.at('Failover'), message)
}

function readGeolocation(location: Mapping, place: FieldPlace): Routing {
  const continent = stringField(location, 'ContinentCode', place)
  const country = stringField(location, 'CountryCode', place)
  const subdivision = stringField(location, 'SubdivisionCode', place)
  if (country === '*') return { isDefault: true, notes: [] }
  if (continent !== '') return { geoCodes: [`GEO-${continent}`], notes: [] }
  if (country === '') throw new RefusedError(place, 'GeoLocation has no code')
  return { geoCodes: [subdivision === '' ? country : `${country}-${subdivision}`], notes: [] }
}

function locate(region: string, place: FieldPlace): string {
  const location = locationOfAwsRegion(region)
  if (location !== undefined) return location
  const hint = didYouMean(region, AWS_REGIONS)
  throw new RefusedError(place, `the location of the region ${quote(region)} is unknown${hint}`)
}

function readGeoproximity(proximity: Mapping, place: FieldPlace): Routing {
  const bias = scalarField(proximity, 'Bias', place)
  const message = 'a bias has no equivalent: only the distance decides'
  const notes = bias === '' || Number(bias) === 0 ? [] : [['Bias', message] as const]
  if (field(proximity, 'Coordinates') !== undefined) {
    const at = place.at('Coordinates')
    const coordinates = mappingField(proximity, 'Coordinates', place)
    const latitude = scalarField(coordinates, 'Latitude', at)
    const point = scanPoint(`${latitude},${scalarField(coordinates, 'Longitude', at)}`)
    if (point === undefined) throw new RefusedError(at, 'Coordinates are not in degrees')
    return { location: pointOf(point).text, notes }
  }
  const region = stringField(proximity, 'AWSRegion', place)
  if (region !== '') return { location: locate(region, place.at('AWSRegion')), notes }
  const group = stringField(proximity, 'LocalZoneGroup', place)
  const what = `the location of the local zone group ${quote(group)} is unknown`
  throw new RefusedError(place.at('LocalZoneGroup'), what)
}

/** The networks of the collection are not in the file: the administrator writes them into the Corefile. */
function readNetworks(config: Mapping, place: FieldPlace): Routing {
  const name = stringField(config, 'LocationName', place)
  if (name === '*') return { isDefault: true, notes: [] }
  if (!/^[\w-]{1,63}$/.test(name)) {
    const message = `LocationName ${quote(name)} is not a name of a custom net`
    throw new RefusedError(place.at('LocationName'), message)
  }
  const code = `NET-${name.toUpperCase()}`
  const message = `add to the directive geoip: net CIDR ${code}, for each network of the location`
  return { geoCodes: [code], notes: [['CidrRoutingConfig', message]] }
}
