import { CONTINENTS } from '../../geo/countries.ts'
import { type FieldPlace, quote, RefusedError } from '../../records/validate/fields.ts'

/** Returns the geo code of `NA`, `NA-US` or `NA-US-CA`. Throws RefusedError. */
export function geoCodeOf(text: string, place: FieldPlace): string {
  const [continent = '', country, subdivision, ...rest] = text.split('-')
  if (!CONTINENTS.has(continent) || rest.length > 0) {
    throw new RefusedError(place, `${quote(text)} is not a geo code, such as NA, NA-US or NA-US-CA`)
  }
  if (country === undefined) return `GEO-${continent}`
  return subdivision === undefined ? country : `${country}-${subdivision}`
}
