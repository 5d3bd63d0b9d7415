import { didYouMean } from '../../base/nearest.ts'
import { Rcode } from '../../dns/iana/index.ts'
import { scanType } from '../../dns/iana/types.ts'
import { scanAddress } from '../../dns/text/address.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import { type FieldPlace, field, quote, RefusedError, stringField } from '../validate/fields.ts'
import { scanHost } from '../validate/names.ts'
import { type CheckKind, PORT_DEFAULT } from './check-kind.ts'

type Mapping = { readonly [key: string]: YamlValue }

interface DnsPart {
  /** The question. `name`: as `scanHost` reads it. */
  readonly query: { readonly name: string; readonly type: number }
  /** 0..15; missing = NOERROR. */
  readonly expectedRcode?: number
  /** An IP address that the answer must contain; missing = any answer. */
  readonly expectedAddress?: string
}

/** A code of the header, without EDNS. */
const RCODE_MAX = 15

/** DNS, which sends a query. An extension. */
export const DNS_CHECK: CheckKind<DnsPart> = {
  fields: ['query', 'expectedRcode', 'expectedAddress'],
  sendsHostName: false,
  scan: scanDns,
}

function scanDns(spec: Mapping, place: FieldPlace): DnsPart {
  if ((field(spec, 'port') ?? PORT_DEFAULT) === PORT_DEFAULT) {
    throw new RefusedError(place.at('port'), 'protocol DNS needs its port, such as port: 53')
  }
  return {
    query: scanQuery(spec, place),
    ...scanExpectedRcode(spec, place),
    ...scanExpectedAddress(spec, place),
  }
}

function scanQuery(spec: Mapping, place: FieldPlace): DnsPart['query'] {
  const text = stringField(spec, 'query', place)
  const [name = '', typeText = '', ...rest] = text.trim().split(/\s+/)
  const type = scanType(typeText)
  if (rest.length === 0 && scanHost(name) !== undefined && type !== undefined) return { name, type }
  const message = `query must be a name and a type, such as "health.example.com A", got ${quote(text)}`
  throw new RefusedError(place.at('query'), message)
}

function scanExpectedRcode(spec: Mapping, place: FieldPlace): Pick<DnsPart, 'expectedRcode'> {
  const text = stringField(spec, 'expectedRcode', place)
  if (text === '') return {}
  const expectedRcode = new Map<string, number>(Object.entries(Rcode)).get(text)
  if (expectedRcode !== undefined && expectedRcode <= RCODE_MAX) return { expectedRcode }
  const message = `expectedRcode must be a code such as NOERROR or NXDOMAIN, got ${quote(text)}${didYouMean(text, Object.keys(Rcode))}`
  throw new RefusedError(place.at('expectedRcode'), message)
}

function scanExpectedAddress(spec: Mapping, place: FieldPlace): Pick<DnsPart, 'expectedAddress'> {
  const expectedAddress = stringField(spec, 'expectedAddress', place)
  if (expectedAddress === '') return {}
  if (scanAddress(expectedAddress) !== undefined) return { expectedAddress }
  const message = `expectedAddress ${quote(expectedAddress)} is not an IP address`
  throw new RefusedError(place.at('expectedAddress'), message)
}
