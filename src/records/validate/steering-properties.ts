import { type GeoCode, scanGeoCode } from '../../geo/code.ts'
import { geoCodeHint } from '../../geo/code-hint.ts'
import { type Point, scanPoint } from '../../geo/point.ts'
import { WEIGHT_MAX } from '../../steering/candidate.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import { GEO_CODES_MAX } from '../dns-record.ts'
import {
  type FieldPlace,
  isMapping,
  quote,
  RefusedError,
  scalarField,
  sequenceField,
  stringField,
} from './fields.ts'

/** The steering fields in the providerSpecific list of an endpoint. */
interface SteeringProperties {
  readonly weight: number | undefined
  readonly codes: readonly GeoCode[]
  readonly isDefault: boolean
  readonly point: Point | undefined
}

const NONE: SteeringProperties = {
  weight: undefined,
  codes: [],
  isDefault: false,
  point: undefined,
}

/**
 * Reads `weight`, `geo-code` (several entries or a comma list mean several codes; `*` = default),
 * `default` (`true`) and `location` (`52.52,13.40`). Other names belong to other providers and are
 * ignored. An endpoint with a geo code and the set identifier `default` is a default too. Throws
 * RefusedError.
 */
export function scanSteeringProperties(
  endpoint: { readonly [key: string]: YamlValue },
  setIdentifier: string,
  place: FieldPlace,
): SteeringProperties {
  const properties = sequenceField(endpoint, 'providerSpecific', place)
  if (properties.length === 0) return NONE
  let weight: number | undefined
  let isDefault = false
  let point: Point | undefined
  const codes: GeoCode[] = []
  const list = place.at('providerSpecific')
  for (let index = 0; index < properties.length; index++) {
    const property = properties[index]
    const at = list.at(index)
    if (!isMapping(property)) throw new RefusedError(at, 'a property must be a mapping')
    const name = stringField(property, 'name', at)
    const value = scalarField(property, 'value', at)
    if (name === 'weight') weight = scanWeight(value, at)
    else if (name === 'geo-code') addCodes(codes, value, at)
    else if (name === 'default') isDefault ||= value === 'true'
    else if (name === 'location') point = scanLocation(value, at)
  }
  const places = codes.filter((code) => code.rung !== 'default')
  isDefault ||= places.length < codes.length || (codes.length > 0 && setIdentifier === 'default')
  return { weight, codes: places, isDefault, point }
}

/** `property`: its place. */
function scanWeight(text: string, property: FieldPlace): number {
  if (!/^\d{1,15}$/.test(text)) {
    const message = `invalid weight expected a value >= 0, got ${quote(text)}`
    throw new RefusedError(property.at('value'), message)
  }
  const weight = Number(text)
  if (weight > WEIGHT_MAX) {
    const message = `invalid weight expected a value <= ${WEIGHT_MAX}, got ${text}`
    throw new RefusedError(property.at('value'), message)
  }
  return weight
}

function scanLocation(text: string, property: FieldPlace): Point {
  const point = scanPoint(text)
  if (point !== undefined) return point
  throw new RefusedError(
    property.at('value'),
    `invalid location: write latitude and longitude in degrees, as 52.52,13.40, got ${quote(text)}`,
  )
}

function addCodes(codes: GeoCode[], list: string, property: FieldPlace): void {
  for (const text of list.split(',', GEO_CODES_MAX + 1)) {
    const code = scanGeoCode(text.trim())
    if (code === undefined) {
      throw new RefusedError(property.at('value'), printCodeProblem(text.trim()))
    }
    if (!codes.some((known) => known.text === code.text)) codes.push(code)
  }
  if (codes.length > GEO_CODES_MAX) {
    throw new RefusedError(
      property.at('value'),
      `an endpoint may have up to ${GEO_CODES_MAX} geo codes`,
    )
  }
}

function printCodeProblem(text: string): string {
  if (text.toUpperCase().startsWith('GEO-'))
    return `unexpected continent code. ${quote(text)}${geoCodeHint(text)}`
  return `unexpected geo code. Prefix with GEO- for continents or use ISO_3166 Alpha 2 supported code for countries, got ${quote(text)}${geoCodeHint(text)}`
}
