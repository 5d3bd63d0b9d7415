import {
  type FieldPlace,
  field,
  isMapping,
  quote,
  RefusedError,
  scalarField,
} from '../../records/validate/fields.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'

type Mapping = { readonly [key: string]: YamlValue }

/** Types whose value is a name. */
const NAME_TYPES: readonly string[] = ['ALIAS', 'CNAME', 'NS', 'PTR']

/** Returns one value of a record as a target of a DNSRecord. Throws RefusedError. */
export function targetOf(type: string, value: YamlValue, place: FieldPlace): string {
  if (isMapping(value)) return composeFields(type, value, place)
  if (typeof value !== 'string') {
    throw new RefusedError(place, `a value of ${type} must be a string or a mapping`)
  }
  if (NAME_TYPES.includes(type)) return value.replace(/(.)\.$/, '$1')
  // octoDNS writes semicolons with a backslash.
  return type === 'TXT' ? value.replaceAll('\\;', ';') : value
}

/** Returns the fields in the order of a zone file. */
function composeFields(type: string, value: Mapping, place: FieldPlace): string {
  const text = (...names: string[]): string => {
    const name = names.find((one) => field(value, one) !== undefined)
    if (name !== undefined) return scalarField(value, name, place)
    throw new RefusedError(place, `${type} has no field ${names[0]}`)
  }
  const quoted = (name: string): string => `"${text(name).replace(/["\\]/g, '\\$&')}"`
  switch (type) {
    case 'CAA':
      return `${text('flags')} ${text('tag')} ${quoted('value')}`
    case 'MX':
      return `${text('preference', 'priority')} ${text('exchange', 'value')}`
    case 'NAPTR':
      return [
        ...[text('order'), text('preference'), quoted('flags'), quoted('service')],
        ...[quoted('regexp'), text('replacement')],
      ].join(' ')
    case 'SRV':
      return `${text('priority')} ${text('weight')} ${text('port')} ${text('target')}`
    case 'SVCB':
    case 'HTTPS':
      return [text('svcpriority'), text('targetname'), ...paramsOf(value, place)].join(' ')
    default:
      throw new RefusedError(place, `a value of ${type} must be a string`)
  }
}

function paramsOf(value: Mapping, place: FieldPlace): string[] {
  const params = field(value, 'svcparams')
  if (params === undefined) return []
  const at = place.at('svcparams')
  if (!isMapping(params)) throw new RefusedError(at, 'svcparams must be a mapping')
  return Object.entries(params).map(([name, param]) => {
    const texts = (Array.isArray(param) ? param : [param]).map((one) => {
      if (typeof one === 'object' && one !== null) {
        throw new RefusedError(at, `the value of ${quote(name)} must be a string or a list`)
      }
      return one === null ? '' : String(one)
    })
    const text = texts.join(',')
    return text === '' ? name : `${name}="${text.replace(/["\\]/g, '\\$&')}"`
  })
}
