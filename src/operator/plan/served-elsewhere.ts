import { groupKey } from '../../health/drain/in-service-endpoints.ts'
import type { DnsRecord, Endpoint } from '../../records/dns-record.ts'
import type { ClaimTree } from '../../records/host-owners.ts'
import type { HostShare } from '../../records/host-share.ts'
import { printHost } from '../../records/print-endpoint.ts'
import type { ClusterView } from '../cluster/cluster-view.ts'
import { claimsIn, withoutForeignNames } from '../conflicts/host-rights.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { decide, type Publishing } from './decide.ts'
import { findInService } from './own.ts'

/** What other records have in service that this cluster exports. */
export interface ServedElsewhere {
  /** True if one has a target in service at the name and type of the endpoint. */
  readonly has: (endpoint: Endpoint) => boolean
  /** Unix time in milliseconds at which a drain of these records ends; Infinity = none ends. */
  readonly drainEndsMs: () => number
}

interface ElsewhereParts {
  readonly view: Pick<
    ClusterView,
    'recordsSharing' | 'secretsOf' | 'healthOf' | 'claimantsAt' | 'claimantsBelow'
  >
  readonly site: string
  /** Namespaces that may have hosts of others; missing = none. */
  readonly shares?: readonly HostShare[]
}

/** Finds what other records have in service when it is first asked for. */
export function servedElsewhere(
  { record }: Pick<Publishing, 'record'>,
  { view, site, shares = [] }: ElsewhereParts,
  nowMs: number,
): ServedElsewhere {
  let endsMs = Number.POSITIVE_INFINITY
  const known = new Map<string, ReadonlySet<string>>()
  const rules = { view, role: 'primary', shares } as const
  const claims = new Map<string, ClaimTree>()
  const contents = new Map<string, DnsRecord | undefined>()
  const contentOf = (other: DnsRecordView): DnsRecord | undefined => {
    if (contents.has(other.key)) return contents.get(other.key)
    const action = decide(other, view.secretsOf(other.namespace))
    let content: DnsRecord | undefined
    if (action.kind === 'publish') {
      const { publishing } = action
      const ofZone = claims.get(publishing.zone) ?? claimsIn(publishing.zone, rules)
      claims.set(publishing.zone, ofZone)
      content = withoutForeignNames(publishing, rules, ofZone).publishing.content
    }
    contents.set(other.key, content)
    return content
  }
  const groupsOf = (key: string, find: () => readonly Endpoint[]): ReadonlySet<string> => {
    const groups = known.get(key) ?? new Set(find().map(groupKey))
    known.set(key, groups)
    return groups
  }
  const has = (endpoint: Endpoint): boolean => {
    return view.recordsSharing(record.key, printHost(endpoint.owner)).some((other) => {
      const content = contentOf(other)
      if (content === undefined) return false
      const untilMs = content.settings?.drain?.untilMs ?? Infinity
      if (untilMs > nowMs) endsMs = Math.min(endsMs, untilMs)
      const facts = { health: view.healthOf(other.key), site, nowMs }
      const groups = groupsOf(other.key, () => findInService(other.key, content, facts))
      return groups.has(groupKey(endpoint))
    })
  }
  return { has, drainEndsMs: () => endsMs }
}
