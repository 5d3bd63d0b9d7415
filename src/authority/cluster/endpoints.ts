import { LABEL_OCTETS_MAX } from '../../dns/name/name.ts'
import { type Address, scanAddress } from '../../dns/text/address.ts'
import { dashedAddress, nameBelow } from './names.ts'
import { type Port, type ServiceFacts, unpackSlice } from './packed.ts'

/** One address of a ready endpoint. */
export interface ServiceEndpoint {
  /** Lower-case wire form. */
  readonly name: Uint8Array
  readonly address: Address
  readonly ports: readonly Port[]
}

/**
 * Returns the ready endpoints of a Service, with names below `base`. `podNames`: endpoints without a
 * hostname are named after their Pods. Omits names and addresses that are invalid.
 */
export function endpointsOf(
  { slices }: ServiceState,
  { publishesNotReady }: ServiceFacts,
  base: Uint8Array,
  podNames: boolean,
): readonly ServiceEndpoint[] {
  const found: ServiceEndpoint[] = []
  for (const { ports, endpoints } of slices.map(unpackSlice)) {
    for (const { addresses, hostname, pod, isReady } of endpoints) {
      if (!isReady && !publishesNotReady) continue
      for (const text of addresses) {
        const address = scanAddress(text)
        if (address === undefined) continue
        const isLabel = pod.length <= LABEL_OCTETS_MAX && !pod.includes('.')
        const podName = podNames && isLabel ? pod : ''
        const name = nameBelow([hostname || podName || dashedAddress(address)], base)
        if (name !== undefined) found.push({ name, address, ports })
      }
    }
  }
  return found
}

export interface ServiceState {
  readonly namespace: string
  readonly name: string
  /** See packed.ts. */
  readonly service: string
  readonly slices: readonly string[]
}
