import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import {
  type FieldPlace,
  quote,
  RefusedError,
  scalarField,
  stringField,
} from '../validate/fields.ts'
import type { CheckKind } from './check-kind.ts'

type Mapping = { readonly [key: string]: YamlValue }

/** HTTP status codes from `first` to `last`, both included. */
interface StatusRange {
  readonly first: number
  readonly last: number
}

interface HttpPart {
  /** The statuses that are healthy; missing = `EXPECTED_STATUS_DEFAULT`. */
  readonly expectedStatus?: readonly StatusRange[]
  /** Text that the body must contain; missing = the body is not read. */
  readonly expectedBody?: string
}

/** As upstream. */
export const EXPECTED_STATUS_DEFAULT: readonly StatusRange[] = [{ first: 200, last: 201 }]

const STATUS_RANGE = /^(\d{3})(?:-(\d{3}))?$/
/** Bounds on one list of expected statuses, and on each of them. */
const STATUS_RANGES_MAX = 16
const STATUS_MIN = 200
const STATUS_MAX = 599
const BODY_CHARACTERS_MAX = 1024

/** HTTP and HTTPS, which work as upstream. */
export const HTTP_CHECK: CheckKind<HttpPart> = {
  fields: ['expectedStatus', 'expectedBody'],
  sendsHostName: true,
  scan: (spec, place) => ({
    ...scanExpectedStatus(spec, place),
    ...scanExpectedBody(spec, place),
  }),
}

function scanExpectedStatus(spec: Mapping, place: FieldPlace): HttpPart {
  const text = scalarField(spec, 'expectedStatus', place)
  if (text === '') return {}
  const ranges = text.split(',', STATUS_RANGES_MAX + 1).map((part) => scanStatusRange(part.trim()))
  const expectedStatus = ranges.filter((range) => range !== undefined)
  if (expectedStatus.length === ranges.length && ranges.length <= STATUS_RANGES_MAX) {
    return { expectedStatus }
  }
  const message = `expectedStatus must be a list of up to ${STATUS_RANGES_MAX} codes and ranges from ${STATUS_MIN} to ${STATUS_MAX}, such as "200, 301-308", got ${quote(text)}`
  throw new RefusedError(place.at('expectedStatus'), message)
}

function scanStatusRange(text: string): StatusRange | undefined {
  const [, from = '', to = from] = STATUS_RANGE.exec(text) ?? []
  const [first, last] = [Number(from), Number(to)]
  return first >= STATUS_MIN && last >= first && last <= STATUS_MAX ? { first, last } : undefined
}

function scanExpectedBody(spec: Mapping, place: FieldPlace): HttpPart {
  const expectedBody = stringField(spec, 'expectedBody', place)
  if (expectedBody === '') return {}
  if (expectedBody.length <= BODY_CHARACTERS_MAX) return { expectedBody }
  const message = `expectedBody may have up to ${BODY_CHARACTERS_MAX} characters`
  throw new RefusedError(place.at('expectedBody'), message)
}
