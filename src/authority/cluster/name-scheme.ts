import type { ServiceState } from './endpoints.ts'
import { externalRecords } from './external-records.ts'
import { type ServiceRecords, serviceRecords } from './service-records.ts'

/** Which names the objects of a cluster have in its zones. All names are relative to the apex. */
export interface NameScheme {
  /** The name server of the zones. */
  readonly nameserver: string
  /** The mailbox of the SOA. */
  readonly mailbox: string
  /** The zones have `dns-version`. */
  readonly hasVersion: boolean
  /** The zones have the addresses of Pods, below `NAMESPACE.pod`. */
  readonly hasPods: boolean
  /** Names that exist without records. */
  readonly branches: readonly string[]
  /** Returns the names that exist because a namespace does. */
  namesOf(namespace: string): readonly string[]
  /** `zone`: lower-case wire form. */
  recordsOf(state: ServiceState, zone: Uint8Array): ServiceRecords
}

interface InternalNames {
  /** Endpoints without a hostname are named after their Pods. */
  readonly podNames: boolean
  /** Omits Services with a cluster IP that have no ready endpoint. */
  readonly ignoresEmpty: boolean
  readonly pods: 'disabled' | 'insecure' | 'verified'
}

const INTERNAL_NAMESERVER = 'ns.dns'

/** The names inside of a cluster, as the Kubernetes DNS specification defines them. */
export function internalScheme({ podNames, ignoresEmpty, pods }: InternalNames): NameScheme {
  return {
    nameserver: INTERNAL_NAMESERVER,
    mailbox: 'hostmaster',
    hasVersion: true,
    hasPods: pods === 'verified',
    branches: ['svc', 'pod', INTERNAL_NAMESERVER],
    namesOf: (namespace) => {
      return pods === 'disabled' ? [`${namespace}.svc`] : [`${namespace}.svc`, `${namespace}.pod`]
    },
    recordsOf: (state, zone) => serviceRecords(state, { zone, podNames, ignoresEmpty }),
  }
}

interface ExternalNames {
  /** The label below which the name server is; a namespace with this name is not served. */
  readonly apexLabel: string
  /** Endpoints without a hostname are named after their Pods. */
  readonly podNames: boolean
  /** Headless Services without external addresses have the names of their endpoints. */
  readonly headless: boolean
}

/** The names outside of a cluster, as CoreDNS's `k8s_external` defines them. */
export function externalScheme({ apexLabel, podNames, headless }: ExternalNames): NameScheme {
  return {
    nameserver: `ns1.${apexLabel}`,
    mailbox: `hostmaster.${apexLabel}`,
    hasVersion: false,
    hasPods: false,
    branches: [`ns1.${apexLabel}`],
    namesOf: (namespace) => (namespace === apexLabel ? [] : [namespace]),
    recordsOf: (state, zone) => {
      // The endpoints still decide whether the Service leads to this server.
      const records = externalRecords(state, { zone, podNames, headless })
      return state.namespace === apexLabel ? { ...records, sets: [], pointers: [] } : records
    },
  }
}
