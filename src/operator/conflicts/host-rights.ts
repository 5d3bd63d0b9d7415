import { RRType } from '../../dns/iana/types.ts'
import type { ApiObject } from '../../kube/api.ts'
import {
  type ClaimTree,
  claimedNames,
  claimOfName,
  describeRefused,
  findOwner,
  type HostClaim,
  type HostOwner,
  isAtOrBelow,
  printKey,
  type RefusedName,
  refuseName,
} from '../../records/host-owners.ts'
import type { HostShare } from '../../records/host-share.ts'
import { lowerNameKey, scanHost } from '../../records/validate/names.ts'
import type { ClusterView } from '../cluster/cluster-view.ts'
import { type Action, type DelegationRole, decide, type Publishing } from '../plan/decide.ts'
import { findProviderSecret, type ProviderSecrets } from '../provider/provider-choice.ts'
import type { DnsRecordView } from '../record/record-view.ts'

interface HostRightsParts {
  readonly view: Pick<ClusterView, 'claimantsAt' | 'claimantsBelow' | 'secretsOf'>
  readonly role: DelegationRole
  /** Namespaces that may have hosts of others. */
  readonly shares: readonly HostShare[]
}

/** A record without the names of other namespaces. */
interface OwnedNames {
  readonly publishing: Publishing
  /** What was left out. */
  readonly refused: readonly RefusedName[]
}

/**
 * Finds which names of a record belong to other namespaces, as nameservers do. `claims`: of the zone of the record, for
 * a caller with several records of it.
 */
export function withoutForeignNames(
  publishing: Publishing,
  parts: HostRightsParts,
  claims = claimsIn(publishing.zone, parts),
): OwnedNames {
  const { content } = publishing
  const { namespace } = content
  const apex = lowerNameKey(scanHost(publishing.zone)!)
  const refused = new Map<string, RefusedName>()
  const endpoints = content.endpoints.filter(({ owner, type }) => {
    const name = lowerNameKey(owner)
    const claimed = { name, apex, namespace, isDelegation: type === RRType.NS }
    const found = refuseName(claimed, claims, parts.shares)
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

/** Returns the claims of the records that are published in a zone. It reads each name once. */
export function claimsIn(zone: string, { view, role }: HostRightsParts): ClaimTree {
  const apex = lowerNameKey(scanHost(zone)!)
  const claims = new Map<string, readonly HostClaim[]>()
  const owners = new Map<string, HostOwner | undefined>()
  const claimOf = (record: DnsRecordView, isSelected: (name: string) => boolean): HostClaim[] => {
    const claimed = readClaimed(record, view.secretsOf(record.namespace), role)
    const name = claimed?.zone === zone ? claimed.names.find(isSelected) : undefined
    return name === undefined ? [] : [claimOfName(claimed!.claim, name, claimed!.rootHost, apex)]
  }
  const claimsAt = (name: string): readonly HostClaim[] => {
    const found =
      claims.get(name) ??
      view.claimantsAt(bare(name)).flatMap((record) => claimOf(record, (one) => one === name))
    claims.set(name, found)
    return found
  }
  return {
    ownerOf: (name) => {
      if (!owners.has(name)) owners.set(name, findOwner(name, apex, claimsAt))
      return owners.get(name)
    },
    *below(name, except) {
      const isBelow = (one: string): boolean => one !== name && isAtOrBelow(one, name)
      for (const record of view.claimantsBelow(printKey(name))) {
        if (record.namespace !== except) yield* claimOf(record, isBelow)
      }
    },
  }
}

/** What a record claims in its zone. */
interface Claimed {
  readonly zone: string
  readonly rootHost: string
  readonly names: readonly string[]
  readonly claim: HostClaim
}

/** The decision about a record, and what else it depends on. */
interface Known {
  readonly secret: ApiObject | string
  readonly role: DelegationRole
  /** Undefined = it claims nothing. */
  readonly claimed: Claimed | undefined
}

/** By object of the record. A changed record is another object. */
const KNOWN = new WeakMap<ApiObject, Known>()

/** Caches the result until the record, its Secret or the role changes. Undefined = the record claims nothing. */
function readClaimed(
  record: DnsRecordView,
  secrets: ProviderSecrets,
  role: DelegationRole,
): Claimed | undefined {
  const secret = findProviderSecret(record.providerName, secrets)
  const known = KNOWN.get(record.object)
  if (known?.secret === secret && known.role === role) return known.claimed
  const claimed = claimedOf(record, decide(record, secrets, role))
  KNOWN.set(record.object, { secret, role, claimed })
  return claimed
}

function claimedOf({ namespace }: DnsRecordView, action: Action): Claimed | undefined {
  if (action.kind !== 'publish' && action.kind !== 'serve' && action.kind !== 'delegate')
    return undefined
  const { content, zone } = action.publishing
  const owners = content.endpoints.map(({ owner }) => lowerNameKey(owner))
  const rootHost = lowerNameKey(content.rootHost)
  const names = claimedNames(rootHost, owners, lowerNameKey(scanHost(zone)!))
  return { zone, rootHost, names, claim: { namespace, createdSeconds: content.createdSeconds } }
}

/** Prints a name without `*.`. */
function bare(name: string): string {
  return printKey(name).replace(/^\*\./, '')
}
