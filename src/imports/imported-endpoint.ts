import { DEFAULT_SET_IDENTIFIER, printSteering } from '../records/print-endpoint.ts'
import type { EndpointDocument } from '../records/record-document.ts'

/** An endpoint of a DNSRecord, with the clients that it serves. */
interface ImportedEndpoint {
  readonly host: string
  readonly type: string
  readonly targets: readonly string[]
  readonly ttlSeconds?: number | undefined
  /** '' = none. */
  readonly setIdentifier?: string
  readonly weight?: number | undefined
  /** Without `*`. */
  readonly geoCodes?: readonly string[]
  readonly isDefault?: boolean
  /** `52.52,13.40` */
  readonly location?: string | undefined
  /** Values of the properties for probes of the targets, by name. */
  readonly probeAt?: Readonly<Record<string, string>>
}

/** Returns the endpoint as a DNSRecord has it. */
export function endpointDocument(endpoint: ImportedEndpoint): EndpointDocument {
  const { host, type, targets, ttlSeconds, weight, location } = endpoint
  const { geoCodes = [], isDefault = false, probeAt = {} } = endpoint
  const { providerSpecific = [], ...steering } = printSteering({
    setIdentifier: identifierOf(endpoint),
    weight,
    geoCodes,
    isDefault,
    location,
  })
  const probing = Object.entries(probeAt).map(([name, value]) => ({ name, value }))
  const properties = [...providerSpecific, ...probing]
  return {
    dnsName: host,
    recordType: type,
    ...(ttlSeconds === undefined ? {} : { recordTTL: ttlSeconds }),
    ...steering,
    targets,
    ...(properties.length === 0 ? {} : { providerSpecific: properties }),
  }
}

/** With geo codes, the identifier `default` would make a default of the endpoint. */
function identifierOf({ setIdentifier = '', geoCodes = [], isDefault }: ImportedEndpoint): string {
  const isMisread = setIdentifier === DEFAULT_SET_IDENTIFIER && geoCodes.length > 0 && !isDefault
  return isMisread ? `${setIdentifier}-${geoCodes[0]}` : setIdentifier
}
