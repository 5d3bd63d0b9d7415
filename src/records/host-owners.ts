import { type HostShare, ROOT_KEY } from './host-share.ts'
import { printHost } from './print-endpoint.ts'

/** Names are `lowerNameKey`s: the octets of the lower-case wire form. */

/** A namespace that has a name, and since when. */
export interface HostClaim {
  readonly namespace: string
  /** Creation of the object in seconds since the epoch; 0 = unknown, which is the youngest. */
  readonly createdSeconds: number
  /** True: an endpoint of a record for the apex has the name. It may have got it at any time. */
  readonly isEditable?: boolean
}

/** The name that decides about a name at or below it, and the claim that owns it. */
export interface HostOwner {
  readonly host: string
  readonly claim: HostClaim
}

/** A name that a record has and that is not served. Names are without the final dot. */
export interface RefusedName {
  readonly name: string
  /** The host to share, so that the name is served. */
  readonly host: string
  /** The namespace that has the host; '' = none, but the name is one that only an operator may write. */
  readonly owner: string
  /** True: the namespace has names below the host. */
  readonly isBelow?: boolean
}

/** The claims of names. */
export interface ClaimTree {
  /** As `findOwner`. */
  ownerOf(name: string, apex: string): HostOwner | undefined
  /** The claims below a name. Those of the namespace `except` may be left out. */
  below(name: string, except: string): Iterable<HostClaim>
}

/** A name of a record. */
interface ClaimedName {
  readonly name: string
  readonly apex: string
  readonly namespace: string
  /** It has NS records, which take the names below it. */
  readonly isDelegation: boolean
}

/** Names that a message lists. */
const NAMES_MAX = 3

const WILDCARD = '\u0001*'

/** Returns the name above `name`, which must not be the root. */
export function keyAbove(name: string): string {
  return name.slice(1 + name.charCodeAt(0))
}

/** Orders claims: the first one owns. Older ones come first, then the names of namespaces decide. */
export function compareClaims(a: HostClaim, b: HostClaim): number {
  const [ageA, ageB] = [ageOf(a), ageOf(b)]
  if (ageA !== ageB) return ageA < ageB ? -1 : 1
  if (a.namespace === b.namespace) return 0
  return a.namespace < b.namespace ? -1 : 1
}

/** Returns a claim of a record, as that of one of its `claimedNames`. */
export function claimOfName(
  claim: HostClaim,
  name: string,
  rootHost: string,
  apex: string,
): HostClaim {
  return rootHost === apex && name !== apex ? { ...claim, isEditable: true } : claim
}

function ageOf({ createdSeconds }: HostClaim): number {
  return createdSeconds === 0 ? Number.POSITIVE_INFINITY : createdSeconds
}

/**
 * Returns the names that a record claims in the zone `apex`: its root host, which Kubernetes never lets it change.
 * A record with the apex as root host claims the names of its endpoints instead, so that no namespace gets all names
 * of the zone. A wildcard stands for its parent, except directly below the apex.
 */
export function claimedNames(rootHost: string, owners: Iterable<string>, apex: string): string[] {
  if (rootHost !== apex) return [rootHost]
  const names = new Set<string>()
  for (const owner of owners) {
    const above = owner.startsWith(WILDCARD) ? owner.slice(WILDCARD.length) : apex
    names.add(above === apex ? owner : above)
  }
  return [...names]
}

/**
 * Returns the owner of `name` in the zone `apex`: that of the longest claimed name at or above it. A claim counts
 * only if the name belonged to its namespace, or to no other one, when it was made. So the result depends on the set
 * of claims alone. A claim that is editable has the age of its record only if its namespace owns the apex; else it is
 * the youngest, because an author could give an old record a new name. The apex, and a wildcard directly below it, own
 * no names below themselves, except those that begin with `_` at the apex. Undefined = the name is free. `claimsAt`:
 * the claims of exactly that name.
 */
export function findOwner(
  name: string,
  apex: string,
  claimsAt: (name: string) => Iterable<HostClaim>,
): HostOwner | undefined {
  const path = [name]
  while (path[0] !== apex && path[0] !== ROOT_KEY) path.unshift(keyAbove(path[0]!))
  // The apex decides only about itself, and names such as `_acme-challenge` that speak for it.
  if (path.length > 1 && !belongsToApexOwner(path[1]!)) path.shift()
  const ownerOfApex = [...claimsAt(apex)].sort(compareClaims)[0]?.namespace
  const aged = (claim: HostClaim): HostClaim => {
    const isKnown = claim.isEditable !== true || claim.namespace === ownerOfApex
    return isKnown ? claim : { ...claim, createdSeconds: 0 }
  }
  const owners: HostOwner[] = []
  for (const host of path) {
    const isValid = (claim: HostClaim): boolean => {
      const before = owners.findLast((one) => compareClaims(one.claim, claim) < 0)
      return before === undefined || before.claim.namespace === claim.namespace
    }
    const claim = Array.from(claimsAt(host), aged).sort(compareClaims).find(isValid)
    if (claim !== undefined) owners.push({ host, claim })
  }
  return owners.at(-1)
}

/** True if the owner of the apex owns a name directly below it, such as `_acme-challenge`. */
export function belongsToApexOwner(name: string): boolean {
  return name[1] === '_'
}

/** Returns which other namespace keeps a name from being served, and the host to share; undefined = it is served. */
export function refuseName(
  { name, apex, namespace, isDelegation }: ClaimedName,
  claims: ClaimTree,
  shares: readonly HostShare[],
): RefusedName | undefined {
  if (isShared(name, namespace, shares)) return undefined
  const found = claims.ownerOf(name, apex)
  if (found !== undefined && found.claim.namespace !== namespace) {
    return { name: printKey(name), host: printKey(found.host), owner: found.claim.namespace }
  }
  if (!isDelegation) return undefined
  for (const one of claims.below(name, namespace)) {
    if (one.namespace === namespace) continue
    // A name without an owner has no age: a delegation of it may come at any time.
    const isOlder = found === undefined || compareClaims(one, found.claim) < 0
    if (!isOlder) continue
    const host = printKey(name)
    return { name: host, host, owner: one.namespace, isBelow: true }
  }
  return undefined
}

/** Prints a name without its final dot. */
export function printKey(name: string): string {
  return printHost(Uint8Array.from(Buffer.from(name, 'latin1')))
}

/** True if a share allows the namespace to have the name. */
export function isShared(name: string, namespace: string, shares: readonly HostShare[]): boolean {
  return shares.some(({ host, namespaces }) => {
    return namespaces?.has(namespace) !== false && isAtOrBelow(name, host)
  })
}

export function isAtOrBelow(name: string, host: string): boolean {
  if (host === ROOT_KEY) return true
  // A suffix of octets may begin inside a label.
  for (let key = name; key.length >= host.length && key !== ROOT_KEY; key = keyAbove(key)) {
    if (key === host) return true
  }
  return false
}

/**
 * Says which names of a record of `namespace` are not served, and why: one text for each host. `allow`: returns the
 * setting that shares a host.
 */
export function describeRefused(
  refused: readonly RefusedName[],
  namespace: string,
  allow: (host: string) => string,
): string[] {
  const hosts = new Set(refused.map(({ host }) => host))
  return [...hosts].map((host) => {
    const ofHost = refused.filter((one) => one.host === host)
    const { owner, isBelow } = ofHost[0]!
    const names = ofHost.slice(0, NAMES_MAX).map(({ name }) => name)
    const more = ofHost.length > NAMES_MAX ? ` and ${ofHost.length - NAMES_MAX} more` : ''
    const what = `${names.join(', ')}${more}: not served`
    return owner === ''
      ? `${what}: no record of namespace ${namespace} has the host ${host}, and only the operator writes records of the zone kdrnt`
      : `${what}: namespace ${owner} had ${isBelow ? `names below ${host}` : host} first; to serve it, add ${allow(host)}`
  })
}
