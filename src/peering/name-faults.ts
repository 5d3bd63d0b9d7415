import { endpointsOfSite, findForeignExports, fixSiteName } from './foreign-exports.ts'
import type { PeerEndpoint, SiteState } from './peer-endpoint.ts'

const NAMES_FIX =
  'give each site a name of its own; if both are nameservers of one site, check that both serve its current records'
const RELAY_FIX =
  'it counts as a relay, so its health reports are ignored; if it is a nameserver of one site, give this site one name'

/** A peer, and what it reports of one host. */
export interface NamedPeer {
  readonly address: string
  /** The site that it is a nameserver of; '' = several sites, or not known. */
  readonly ownSite: string
  /** The sites that its zone names. */
  readonly sites: readonly string[]
  readonly states: readonly SiteState[]
}

/** A name of a site that two sites have, or that a peer should not use. */
export interface NameFault {
  /** Stays the same while the fault lasts. */
  readonly id: string
  readonly text: string
}

interface NameContext {
  /** Our own site. */
  readonly site: string
  /** Where the name of our site is set. */
  readonly setting: string
  /** Endpoints of our records of the host. Empty = another block of the server may have them. */
  readonly ours: () => readonly PeerEndpoint[]
  /** Other peers, at least those of the same site. */
  readonly others: readonly NamedPeer[]
}

/**
 * Returns what is wrong with the names of sites that a peer uses for one host. A nameserver may be late, so only a
 * fault that lasts for SITE_CONFLICT_MS counts.
 */
export function findNameFaults(peer: NamedPeer, context: NameContext): readonly NameFault[] {
  const { site, setting, others } = context
  const faults: NameFault[] = []
  const reported = endpointsOfSite(peer.states, site)
  const ours = reported.length > 0 ? context.ours() : []
  if (ours.length > 0 && findForeignExports(ours, reported).length > 0) {
    const text = printSiteConflict(peer.address, site, setting)
    faults.push({ id: `${peer.address} ours`, text })
  }
  if (peer.ownSite === '' || peer.ownSite === site) return faults
  for (const other of others) {
    if (other.address === peer.address || other.ownSite !== peer.ownSite) continue
    if (!isOtherSite(peer, other)) continue
    const [first, second] = [peer.address, other.address].sort()
    const text = /* warning */ `peers ${first} and ${second} report different endpoints under the name of one site, ${peer.ownSite}: ${NAMES_FIX}`
    faults.push({ id: `${first} ${second}`, text })
  }
  return faults
}

/**
 * True if a peer with the name of our site is not one of its nameservers, as far as one host shows. `ours`: endpoints
 * of our records of the host. Also true for a nameserver of this site that does not have a change yet: see
 * `namesakeSince`.
 */
export function isNamesake(
  { states }: Pick<NamedPeer, 'states'>,
  site: string,
  ours: readonly PeerEndpoint[],
): boolean {
  const reported = endpointsOfSite(states, site)
  return reported.length === 0 || findForeignExports(ours, reported).length > 0
}

/**
 * Returns the monotonic time since which a peer with the name of our site is a namesake: Infinity = it is our
 * nameserver, -Infinity = it never was. Our nameserver may be late, so it counts as one until it has been a namesake
 * for SITE_CONFLICT_MS. `beforeMs`: the last result; undefined = it is new.
 */
export function namesakeSince(
  isNamesake: boolean,
  beforeMs: number | undefined,
  nowMs: number,
): number {
  if (!isNamesake) return Number.POSITIVE_INFINITY
  if (beforeMs === undefined) return Number.NEGATIVE_INFINITY
  return Math.min(beforeMs, nowMs)
}

/** A peer whose zone names several sites is not known to be a nameserver of any of them. */
export function findRelay({ address, sites }: Pick<NamedPeer, 'address' | 'sites'>): NameFault[] {
  if (sites.length <= 1) return []
  const text = /* warning */ `peer ${address} reports endpoints of several sites, ${sites.join(', ')}: ${RELAY_FIX}`
  return [{ id: `${address} relay ${sites.join()}`, text }]
}

/** What is wrong with a peer that reports other endpoints under the name of our site. */
function printSiteConflict(peer: string, site: string, setting: string): string {
  return /* warning */ `peer ${peer} reports other endpoints under the name of this site, ${site}: ${fixSiteName(setting)}`
}

/** The fault of a peer that has the name of our site, and none of our hosts. */
export function disjointFault({ address }: Pick<NamedPeer, 'address'>, site: string): NameFault {
  const text = /* warning */ `peer ${address} reports no host of ours under the name of this site, ${site}: ${fixSiteName('`site`')}`
  return { id: `${address} disjoint`, text }
}

/** A nameserver of one site may lack addresses that it finds down, but not both of two nameservers. */
function isOtherSite(a: NamedPeer, b: NamedPeer): boolean {
  const [ofA, ofB] = [a, b].map(({ states, ownSite }) => endpointsOfSite(states, ownSite))
  return findForeignExports(ofA!, ofB!).length > 0 && findForeignExports(ofB!, ofA!).length > 0
}

/** Returns the monotonic time since which each of the faults lasts, by id. `before`: of the last check. */
export function lastingSince(
  faults: readonly NameFault[],
  before: ReadonlyMap<string, number> | undefined,
  nowMs: number,
): Map<string, number> {
  return new Map(faults.map(({ id }) => [id, before?.get(id) ?? nowMs]))
}
