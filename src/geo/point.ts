/** Coordinates on the earth in degrees: -90..90 and -180..180. */
export interface Coordinates {
  readonly latitude: number
  readonly longitude: number
}

/** The location of an endpoint. Endpoints with equal points are at one place. */
export interface Point extends Coordinates {
  /** Canonical text in hundredths of a degree, about a kilometre; identifies the point: `52.52,13.40`. */
  readonly text: string
}

const NUMBER = /^[+-]?\d{1,3}(?:\.\d{1,15})?$/
/** Mean radius of the earth (IUGG). */
const EARTH_RADIUS_KM = 6371.0088
const RADIANS = Math.PI / 180

/** Parses `LATITUDE,LONGITUDE` in degrees; undefined = invalid. Rounds to hundredths. */
export function scanPoint(text: string): Point | undefined {
  const [latitude = '', longitude = '', ...rest] = text.split(',').map((part) => part.trim())
  if (rest.length > 0 || !NUMBER.test(latitude) || !NUMBER.test(longitude)) return undefined
  const given = { latitude: Number(latitude), longitude: Number(longitude) }
  return areCoordinates(given) ? pointOf(given) : undefined
}

/** True if both are numbers within their ranges. */
export function areCoordinates({ latitude, longitude }: Coordinates): boolean {
  return Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180
}

/** Returns the point of coordinates. All meridians meet at a pole, and -180° is the meridian of 180°. */
export function pointOf(given: Coordinates): Point {
  const latitude = roundDegrees(given.latitude)
  const turned = roundDegrees(given.longitude)
  const longitude = Math.abs(latitude) === 90 ? 0 : turned === -180 ? 180 : turned
  return { latitude, longitude, text: `${latitude.toFixed(2)},${longitude.toFixed(2)}` }
}

/** Prints coordinates with up to four decimals, about ten metres; '' = unknown. */
export function printCoordinates(coordinates: Coordinates | undefined): string {
  if (coordinates === undefined) return ''
  // Databases have 32-bit numbers, whose further digits mean nothing.
  const print = (degrees: number): string => String(Math.round(degrees * 10_000) / 10_000)
  return `${print(coordinates.latitude)},${print(coordinates.longitude)}`
}

function roundDegrees(degrees: number): number {
  // The sum turns -0 into 0.
  return Math.round(degrees * 100) / 100 + 0
}

/** Returns the length of the great circle between two points of the earth, in kilometres. */
export function distanceKm(a: Coordinates, b: Coordinates): number {
  return (
    2 * EARTH_RADIUS_KM * Math.asin(Math.min(1, Math.sqrt(squaredChord(vector(a), vector(b))) / 2))
  )
}

/** A point of the unit sphere. */
export type UnitVector = readonly [x: number, y: number, z: number]

export function vector({ latitude, longitude }: Coordinates): UnitVector {
  const fromEquator = Math.cos(latitude * RADIANS)
  const along = longitude * RADIANS
  return [
    fromEquator * Math.cos(along),
    fromEquator * Math.sin(along),
    Math.sin(latitude * RADIANS),
  ]
}

/**
 * Returns the square of the straight distance of two points, 0..4. It grows with the length of the great circle, and
 * is exact near the poles and across the antimeridian.
 */
export function squaredChord(a: UnitVector, b: UnitVector): number {
  return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2
}
