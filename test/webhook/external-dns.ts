import { SILENT_LOG } from '../../src/base/telemetry/log.ts'
import { systemTimers } from '../../src/base/timers.ts'
import type { RecordDocument } from '../../src/records/record-document.ts'
import { ClusterRecordStore } from '../../src/webhook/cluster-store.ts'
import { type ExternalEndpoint, keyOf, scanEndpoints } from '../../src/webhook/external-endpoint.ts'
import { WebhookProvider } from '../../src/webhook/provider.ts'
import type { RecordStore } from '../../src/webhook/record-store.ts'
import { MemoryApi } from '../support/memory-api.ts'

export const RECORDS = { group: 'kuadrant.io', version: 'v1alpha1', plural: 'dnsrecords' }

/** An endpoint as external-dns sends it. */
export function endpoint(fields: object): ExternalEndpoint {
  const [scanned] = scanEndpoints(JSON.stringify([fields]))
  return scanned!
}

/** What the TXT registry of external-dns adds to an endpoint. */
export function registryOf(owned: ExternalEndpoint, owner = 'default'): ExternalEndpoint {
  const { dnsName, recordType, setIdentifier, properties } = owned
  const dot = dnsName.startsWith('*.') ? dnsName.slice(1) : `-${dnsName}`
  return {
    ...endpoint({
      dnsName: `${recordType.toLowerCase()}${dot}`,
      recordType: 'TXT',
      targets: [
        `"heritage=external-dns,external-dns/owner=${owner},external-dns/resource=service/a/b"`,
      ],
      labels: { ownedRecord: dnsName },
    }),
    setIdentifier,
    properties,
  }
}

export interface Site {
  readonly api: MemoryApi
  readonly provider: WebhookProvider
  readonly records: () => readonly RecordDocument[]
}

/** A provider whose records are in an API server in memory. */
export function openSite({
  api = new MemoryApi(),
  owner = 'default',
  log = SILENT_LOG,
} = {}): Site {
  const namespace = 'dns'
  const store = new ClusterRecordStore({ api, timers: systemTimers, namespace, owner })
  return {
    api,
    provider: openProvider(store, owner, log),
    records: () => [...api.all(RECORDS).values()] as unknown as RecordDocument[],
  }
}

export function openProvider(
  store: RecordStore,
  owner = 'default',
  log = SILENT_LOG,
): WebhookProvider {
  const scope = { owner, zones: ['example.org', 'sub.example.org'], namespace: 'dns' }
  return new WebhookProvider({ store, scope, excluded: ['internal.example.org'], log })
}

/** The plan of external-dns with policy `sync`, without its registry: what is not there as wanted. */
export function planOf(current: readonly ExternalEndpoint[], wanted: readonly ExternalEndpoint[]) {
  const [before, after] = [byKey(current), byKey(wanted)]
  const put = wanted.filter((one) => {
    const now = before.get(keyOf(one))
    return now === undefined || isChanged(one, now)
  })
  return { remove: current.filter((one) => !after.has(keyOf(one))), put }
}

function byKey(endpoints: readonly ExternalEndpoint[]): Map<string, ExternalEndpoint> {
  return new Map(endpoints.map((one) => [keyOf(one), one]))
}

/** A TTL that is not wanted is no change. */
function isChanged(wanted: ExternalEndpoint, now: ExternalEndpoint): boolean {
  const form = ({ targets, properties }: ExternalEndpoint) => {
    return JSON.stringify([
      targets.map((one) => one.toLowerCase()).sort(),
      properties.map(({ name, value }) => `${name}=${value}`).sort(),
    ])
  }
  return (
    form(wanted) !== form(now) || (wanted.ttlSeconds > 0 && wanted.ttlSeconds !== now.ttlSeconds)
  )
}
