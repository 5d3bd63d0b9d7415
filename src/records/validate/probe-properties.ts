import { scanAddress } from '../../dns/text/address.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import type { ProbeAt } from '../health-check.ts'
import {
  type FieldPlace,
  isMapping,
  quote,
  RefusedError,
  scalarField,
  sequenceField,
} from './fields.ts'
import { scanHost } from './names.ts'

const HOST_NAME = /^[a-z0-9_]([-a-z0-9_.]*[a-z0-9_])?\.?$/i
const HEALTH_PORT = 'health-port'
const HEALTH_ADDRESS = 'health-address'

/** The properties of an endpoint that say where its targets are probed. */
export const PROBE_PROPERTIES: readonly string[] = [HEALTH_PORT, HEALTH_ADDRESS]

/**
 * Reads `health-port` and `health-address` in the providerSpecific list of an endpoint; undefined =
 * it has neither. Of several with one name, the last one counts. Throws RefusedError.
 */
export function scanProbeAt(
  endpoint: { readonly [key: string]: YamlValue },
  place: FieldPlace,
): ProbeAt | undefined {
  let [address, port] = ['', 0]
  const list = place.at('providerSpecific')
  for (const [index, property] of sequenceField(endpoint, 'providerSpecific', place).entries()) {
    if (!isMapping(property) || !PROBE_PROPERTIES.includes(String(property.name))) continue
    const text = scalarField(property, 'value', list.at(index))
    const at = list.at(index).at('value')
    if (property.name === HEALTH_PORT) port = scanPort(text, at)
    else address = scanTestAddress(text, at, HEALTH_ADDRESS)
  }
  return address === '' && port === 0 ? undefined : { address, port }
}

/** Reads the address or host name to probe in place of a target, without a final dot. */
export function scanTestAddress(text: string, place: FieldPlace, what: string): string {
  const isHost = HOST_NAME.test(text) && scanHost(text) !== undefined
  if (!isHost && scanAddress(text) === undefined) {
    throw new RefusedError(place, `${what} ${quote(text)} is not an IP address or a host name`)
  }
  return text.toLowerCase().replace(/\.$/, '')
}

/** True for the ports that the CustomResourceDefinition of a DNSHealthCheckProbe allows, and thus `health-port`. */
export function isHealthPort(port: number): boolean {
  return [53, 80, 443].includes(port) || (port >= 1024 && port <= 49_151)
}

function scanPort(text: string, place: FieldPlace): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (isHealthPort(port)) return port
  const message = `${HEALTH_PORT} must be 53, 80, 443 or from 1024 to 49151, got ${quote(text)}`
  throw new RefusedError(place, message)
}
