import { RRType } from '../../dns/iana/types.ts'
import {
  type ClaimTree,
  claimedNames,
  claimOfName,
  describeRefused,
  findOwner,
  type HostClaim,
  printKey,
  type RefusedName,
  refuseName,
} from '../../dnsrecord/host-owners.ts'
import type { HostShare } from '../../dnsrecord/host-share.ts'
import { lowerNameKey, scanHost } from '../../dnsrecord/validate/names.ts'
import type { ClusterView } from '../cluster/cluster-view.ts'
import { type DelegationRole, decide, type Publishing } from '../plan/decide.ts'
import type { DnsRecordView } from '../record/record-view.ts'

export interface HostRightsParts {
  readonly view: Pick<ClusterView, 'claimantsAt' | 'claimantsBelow' | 'secretsOf'>
  readonly role: DelegationRole
  /** Namespaces that may have hosts of others. */
  readonly shares: readonly HostShare[]
}

/** A record without the names of other namespaces. */
export interface OwnedNames {
  readonly publishing: Publishing
  /** What was left out. */
  readonly refused: readonly RefusedName[]
}

/** Finds which names of a record belong to other namespaces, as nameservers do. */
export function withoutForeignNames(publishing: Publishing, parts: HostRightsParts): OwnedNames {
  const { content } = publishing
  const { namespace } = content
  const apex = lowerNameKey(scanHost(publishing.zone)!)
  const claims = claimsOf(publishing.zone, apex, parts)
  const refused = new Map<string, RefusedName>()
  const endpoints = content.endpoints.filter(({ owner, type }) => {
    const name = lowerNameKey(owner)
    const judged = { name, apex, namespace, isDelegation: type === RRType.NS }
    const found = refuseName(judged, claims, parts.shares)
    if (found !== undefined) refused.set(found.name, found)
    return found === undefined
  })
  if (refused.size === 0) return { publishing, refused: [] }
  return {
    publishing: { ...publishing, content: { ...content, endpoints } },
    refused: [...refused.values()],
  }
}

/** Says which names of a record of `namespace` are not served, and what allows them. */
export function describeNotOwned(refused: readonly RefusedName[], namespace: string): string[] {
  const allow = (host: string): string => `--share-hosts "${host} ${namespace}" to the operator`
  return describeRefused(refused, namespace, allow)
}

/** The claims of the records that are published in a zone. */
function claimsOf(zone: string, apex: string, parts: HostRightsParts): ClaimTree {
  const known = new Map<string, readonly HostClaim[]>()
  const { view } = parts
  const claimsIn = (
    records: readonly DnsRecordView[],
    isMeant: (name: string) => boolean,
  ): HostClaim[] => {
    return records.flatMap((record) => claimOf(record, zone, apex, parts, isMeant) ?? [])
  }
  const claimsAt = (name: string): readonly HostClaim[] => {
    const claims = known.get(name) ?? claimsIn(view.claimantsAt(bare(name)), (one) => one === name)
    known.set(name, claims)
    return claims
  }
  return {
    ownerOf: (name) => findOwner(name, apex, claimsAt),
    below: (name) => claimsIn(view.claimantsBelow(printKey(name)), (one) => one !== name),
  }
}

function claimOf(
  record: DnsRecordView,
  zone: string,
  apex: string,
  { view, role }: HostRightsParts,
  isMeant: (name: string) => boolean,
): HostClaim | undefined {
  const action = decide(record, view.secretsOf(record.namespace), role)
  if (action.kind !== 'publish' && action.kind !== 'serve' && action.kind !== 'delegate')
    return undefined
  const { content, zone: of } = action.publishing
  if (of !== zone) return undefined
  const owners = content.endpoints.map(({ owner }) => lowerNameKey(owner))
  const rootHost = lowerNameKey(content.rootHost)
  const name = claimedNames(rootHost, owners, apex).find(isMeant)
  if (name === undefined) return undefined
  const claim = { namespace: record.namespace, createdSeconds: content.createdSeconds }
  return claimOfName(claim, name, rootHost, apex)
}

/** Prints a name without `*.`. */
function bare(name: string): string {
  return printKey(name).replace(/^\*\./, '')
}
