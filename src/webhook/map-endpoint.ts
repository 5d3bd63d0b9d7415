import type { EndpointDocument } from '../records/record-document.ts'
import { validateEndpoint } from '../records/validate/dns-record.ts'
import type { FieldProblem } from '../records/validate/fields.ts'
import {
  type EndpointProperty,
  mapProviderProperties,
} from '../sources/objects/provider-properties.ts'
import { asciiName, type ExternalEndpoint, hostOf } from './external-endpoint.ts'

/** Settings of the whole record are kept with the endpoint that has them, under this prefix. */
export const SETTING_PROPERTY_PREFIX = 'sextant/'
const ALIAS_TYPE = 'ALIAS'
/** How external-dns writes an alias. */
const ALIAS_PROPERTY: EndpointProperty = { name: 'alias', value: 'true' }

/** An endpoint in the form of a DNSRecord, or why it cannot be served. */
type MappedEndpoint =
  | { readonly document: EndpointDocument; readonly notes: readonly FieldProblem[] }
  | { readonly refused: FieldProblem }

/** Returns the endpoint of a DNSRecord that serves `endpoint`. `fromDocument` is the way back. */
export function mapEndpoint(endpoint: ExternalEndpoint): MappedEndpoint {
  const { recordType, targets, ttlSeconds, setIdentifier, properties } = endpoint
  const scope = { recordType, targets, hasHealthCheck: false }
  const mapped = mapProviderProperties(properties, scope)
  if ('refused' in mapped) {
    const { path, message } = mapped.refused
    return { refused: { path: ['providerSpecific', ...path], message } }
  }
  const providerSpecific = [
    ...mapped.properties,
    ...mapped.settings.map(({ name, value }) => {
      return { name: `${SETTING_PROPERTY_PREFIX}${name}`, value }
    }),
  ].sort((a, b) => (a.name < b.name ? -1 : 1))
  const document: EndpointDocument = {
    dnsName: asciiName(endpoint.dnsName),
    recordType: mapped.recordType,
    targets,
    ...(ttlSeconds === 0 ? {} : { recordTTL: ttlSeconds }),
    ...(setIdentifier === '' ? {} : { setIdentifier }),
    ...(providerSpecific.length === 0 ? {} : { providerSpecific }),
  }
  // Copies have the index signature that the validation asks for.
  const copies = providerSpecific.map((property) => ({ ...property }))
  const checked = validateEndpoint({ ...document, providerSpecific: copies }, hostOf(endpoint))
  if ('problem' in checked) return { refused: checked.problem }
  return { document, notes: mapped.problems }
}

/** Returns an endpoint of a DNSRecord as external-dns gets it. */
export function fromDocument(document: EndpointDocument): ExternalEndpoint {
  const { dnsName, recordType, targets, recordTTL, setIdentifier, providerSpecific } = document
  const isAlias = recordType === ALIAS_TYPE
  return {
    dnsName,
    // external-dns manages no type ALIAS.
    recordType: isAlias ? 'CNAME' : recordType,
    targets,
    setIdentifier: setIdentifier ?? '',
    ttlSeconds: recordTTL ?? 0,
    labels: {},
    properties: [...(providerSpecific ?? []), ...(isAlias ? [ALIAS_PROPERTY] : [])],
  }
}
