import { OctetReader, type OctetWriter } from './octets.ts'
import { expected, type FieldReader, type RdataPart } from './part.ts'

/** The zero points of latitude and longitude (thousandths of an arc second) and of altitude (cm). */
const EQUATOR = 2 ** 31
const ALTITUDE_BASE_CM = 10_000_000
const ALTITUDE_CM_MAX = 2 ** 32 - 1
const ARC_MS_PER_DEGREE = 3_600_000
/** Octets after the version. */
const BODY_OCTETS = 15
/** 9 * 10^9 cm. */
const PRECISION_CM_MAX = 9_000_000_000

/**
 * The whole rdata of LOC (RFC 1876 section 2):
 *
 *     version u8 = 0 | size u8 | horizontal precision u8 | vertical precision u8
 *     latitude u32 | longitude u32 | altitude u32
 *
 * Size and precisions are m * 10^e centimetres, m in the high and e in the low four bits, 0..9
 * each. Other versions are opaque: they are kept unchanged and printed as unknown rdata.
 */
export const location: RdataPart = {
  parse: (input, output) => {
    const version = input.uint(1)
    if (version < 0) return false
    output.u8(version)
    const body = version === 0 ? input.take(BODY_OCTETS) : input.rest()
    if (body === undefined || (version === 0 && !isBody(body))) return false
    output.put(body)
    return true
  },
  print: (input) => {
    input.take(1)
    const precisions = Array.from(input.take(3) ?? [], printPrecision)
    const latitude = printAngle(input.uint(4) - EQUATOR, 'N', 'S')
    const longitude = printAngle(input.uint(4) - EQUATOR, 'E', 'W')
    const altitude = `${((input.uint(4) - ALTITUDE_BASE_CM) / 100).toFixed(2)}m`
    return [latitude, longitude, altitude, ...precisions].join(' ')
  },
  scan: scanLocation,
}

/** Returns why well-formed LOC rdata has no text form: another version, or zero with an exponent. */
export function checkLocation(rdata: Uint8Array): string | undefined {
  if (rdata[0] !== 0) return 'only version 0 has a text form'
  const isOdd = rdata.subarray(1, 4).some((octet) => octet >> 4 === 0 && octet !== 0)
  return isOdd ? 'a precision of zero has an exponent' : undefined
}

function isBody(body: Uint8Array): boolean {
  const precisions = body.subarray(0, 3)
  if (precisions.some((octet) => octet >> 4 > 9 || (octet & 15) > 9)) return false
  const angles = new OctetReader(body, 3, BODY_OCTETS)
  return (
    Math.abs(angles.uint(4) - EQUATOR) <= 90 * ARC_MS_PER_DEGREE &&
    Math.abs(angles.uint(4) - EQUATOR) <= 180 * ARC_MS_PER_DEGREE
  )
}

function printAngle(arcMs: number, positive: string, negative: string): string {
  const size = Math.abs(arcMs)
  const degrees = Math.floor(size / ARC_MS_PER_DEGREE)
  const minutes = Math.floor(size / 60_000) % 60
  const arcSeconds = ((size % 60_000) / 1000).toFixed(3)
  return `${degrees} ${minutes} ${arcSeconds} ${arcMs < 0 ? negative : positive}`
}

function printPrecision(octet: number): string {
  const centimetres = (octet >> 4) * 10 ** (octet & 15)
  return centimetres % 100 === 0 ? `${centimetres / 100}m` : `${(centimetres / 100).toFixed(2)}m`
}

/** `d [m [s]] N|S d [m [s]] E|W altitude[m] [size[m] [horizontal[m] [vertical[m]]]]` */
function scanLocation(input: FieldReader, output: OctetWriter): string | undefined {
  const latitude = scanAngle(input, 90, 'N', 'S')
  if (latitude === undefined) return 'expected a latitude, as in 52 22 23.000 N'
  const longitude = scanAngle(input, 180, 'E', 'W')
  if (longitude === undefined) return 'expected a longitude, as in 4 53 32.000 E'
  const altitudeField = input.next()
  const altitude = scanCentimetres(altitudeField?.text ?? '')
  const altitudeAboveBase = (altitude ?? Number.NaN) + ALTITUDE_BASE_CM
  if (!(altitudeAboveBase >= 0 && altitudeAboveBase <= ALTITUDE_CM_MAX)) {
    return expected('an altitude in metres', altitudeField)
  }
  const precisions: number[] = []
  for (const byDefault of ['1m', '10000m', '10m']) {
    const field = input.next()
    const centimetres = scanCentimetres(field?.text ?? byDefault)
    if (centimetres === undefined || centimetres < 0 || centimetres > PRECISION_CM_MAX) {
      return expected('a size or precision in metres', field)
    }
    precisions.push(composePrecision(centimetres))
  }
  output.u8(0)
  for (const precision of precisions) output.u8(precision)
  output.u32(latitude + EQUATOR)
  output.u32(longitude + EQUATOR)
  output.u32(altitudeAboveBase)
  return undefined
}

/**
 * Parses an angle to thousandths of an arc second; returns undefined if degrees, minutes or seconds
 * are out of range.
 */
function scanAngle(
  input: FieldReader,
  degreesMax: number,
  positive: string,
  negative: string,
): number | undefined {
  const numbers: number[] = []
  for (let i = 0; i < 4; i++) {
    const text = input.next()?.text.toUpperCase() ?? ''
    if (text === positive || text === negative) {
      const [degrees = Number.NaN, minutes = 0, arcSeconds = 0] = numbers
      const size = degrees * ARC_MS_PER_DEGREE + minutes * 60_000 + Math.round(arcSeconds * 1000)
      const isInRange = minutes < 60 && arcSeconds < 60 && size <= degreesMax * ARC_MS_PER_DEGREE
      return isInRange ? (text === negative ? -size : size) : undefined
    }
    // Only the third number, the seconds, may have a fraction.
    if (!(i < 2 ? /^\d{1,3}$/ : /^\d{1,2}(?:\.\d{1,3})?$/).test(text)) return undefined
    numbers.push(Number(text))
  }
  return undefined
}

function scanCentimetres(text: string): number | undefined {
  const match = /^(-?)(\d{1,8})(?:\.(\d{1,2}))?m?$/i.exec(text)
  if (match === null) return undefined
  const size = Number(match[2]) * 100 + Number((match[3] ?? '').padEnd(2, '0'))
  return match[1] === '-' ? -size : size
}

/** Encodes a length as one digit and an exponent; drops further digits, as the code in RFC 1876 does. */
function composePrecision(centimetres: number): number {
  let exponent = 0
  let mantissa = centimetres
  while (mantissa > 9) {
    mantissa = Math.floor(mantissa / 10)
    exponent += 1
  }
  return (mantissa << 4) | exponent
}
