import { printType, RRType } from '../../dns/iana/types.ts'
import { nameKey } from '../../dns/name/name.ts'
import type { DnsRecord, Endpoint } from '../../dnsrecord/dns-record.ts'
import { unpackRecord } from '../../dnsrecord/pack.ts'
import { printHost, printTarget } from '../../dnsrecord/print-endpoint.ts'
import { compareRecords, type RecordRank } from '../../dnsrecord/record-order.ts'
import type { StoredRecord } from '../../dnsrecord/record-source.ts'
import type { ApiObject } from '../../kube/api.ts'
import { textOf } from '../../kube/api.ts'
import { printPlace } from '../../publish/decoded-record.ts'
import {
  buildOwnerSets,
  type Contribution,
  DEFAULT_KEY,
  type Drop,
} from '../../publish/owner-sets.ts'
import type { Conflict } from '../../publish/record-conflicts.ts'
import type { Publishing } from '../plan/decide.ts'
import { normalizeName } from '../record/spec-endpoint.ts'

/** Values of an endpoint that a message shows. */
const VALUES_MAX = 3
const UP: ReadonlySet<number> = new Set()

/** What other records keep a record from. */
export interface RecordConflicts {
  /** Conflicts with records of this cluster, one line each; empty = there is none. */
  readonly texts: readonly string[]
  /** Conflicts with records of other sites, one line each, as a nameserver logs them. */
  readonly ofSites: readonly string[]
  /** No endpoint of the record is served. */
  readonly isWhole: boolean
  /** False for an endpoint, in the form of `spec.endpoints`, that is not served. */
  readonly isServed: (endpoint: ApiObject) => boolean
}

export const NO_CONFLICTS: RecordConflicts = {
  texts: [],
  ofSites: [],
  isWhole: false,
  isServed: () => true,
}

/** Whose endpoints share a name. */
export interface Sharing {
  /** Our own site. */
  readonly site: string
  /** Returns the other records of the zone in this cluster with an endpoint of that name. */
  readonly rivals: (name: string) => readonly Publishing[]
  /** Records of other sites. */
  readonly foreign: readonly StoredRecord[]
}

/** A record with endpoints at names of the zone. */
interface Holder extends RecordRank {
  /** As in `Contribution`. */
  readonly place: string
  readonly content: Pick<DnsRecord, 'endpoints' | 'settings'>
}

/**
 * Finds what the nameservers do not serve of a record, and what else is in dispute, because other records of the
 * zone have the same names. The code that builds their RRsets decides.
 */
export function findConflicts(publishing: Publishing, sharing: Sharing): RecordConflicts {
  const { content, zone } = publishing
  const { site, rivals } = sharing
  const own = holderOf(publishing, site)
  const foreign = sharing.foreign.map(foreignHolder)
  const [lost, elsewhere] = [new Map<Endpoint, string>(), new Set<Endpoint>()]
  const others: string[] = []
  const ofSites: string[] = []
  for (const [id, owner] of namesOf([own, ...foreign])) {
    const isApex = printHost(owner) === zone
    const theirs = foreign.filter(({ content }) => hasName(content, id))
    const ours = rivals(printHost(owner)).map((one) => holderOf(one, site))
    const about = { id, owner, isApex, site, own: own.key }
    const here =
      ours.length === 0 && !isApex ? undefined : contend({ ...about, holders: [own, ...ours] })
    for (const [endpoint, text] of here?.lost ?? []) lost.set(endpoint, text)
    const isOther = ({ key, type }: Conflict): boolean =>
      key === own.key && ![...(here?.lost.keys() ?? [])].some((one) => one.type === type)
    others.push(...(here?.conflicts ?? []).filter(isOther).map(({ text }) => text))
    if (theirs.length === 0) continue
    const all = contend({ ...about, holders: [own, ...ours, ...theirs] })
    for (const endpoint of all.lost.keys()) elsewhere.add(endpoint)
    const known = new Set(here?.conflicts.map(({ text }) => text))
    ofSites.push(...all.conflicts.map(({ text }) => text).filter((text) => !known.has(text)))
  }
  if (lost.size === 0 && others.length === 0 && ofSites.length === 0) return NO_CONFLICTS
  const missing = new Set([...lost.keys(), ...elsewhere])
  const identities = new Set([...missing].map(identify))
  return {
    texts: [...new Set([...lost.values(), ...others])],
    ofSites: [...new Set(ofSites)],
    isWhole: missing.size === content.endpoints.length,
    isServed: (endpoint) => !identities.has(identifyObject(endpoint)),
  }
}

interface Contest {
  readonly holders: readonly Holder[]
  /** `nameKey` of the owner. */
  readonly id: string
  readonly owner: Uint8Array
  readonly isApex: boolean
  readonly site: string
  /** Key of the record whose losses count. */
  readonly own: string
}

/** Builds the RRsets of one name. `lost`: what is not served of our own record, and why. */
function contend({ holders, id, owner, isApex, site, own }: Contest) {
  const named = [...holders].sort(compareRecords).flatMap((one) => contributionsOf(one, id))
  const needsNs = isApex && !named.some(({ endpoint }) => endpoint.type === RRType.NS)
  const all = needsNs ? [...named, defaultNs(owner, site)] : named
  const lost = new Map<Endpoint, string>()
  const conflicts: Conflict[] = []
  const report = {
    dropped: (dropped: Contribution, drop: Drop) => {
      if (dropped.key !== own) return
      const text = printDrop(dropped, drop, all)
      if (text !== '') lost.set(dropped.endpoint, text)
    },
    kept: () => {},
  }
  buildOwnerSets(owner, all, { isApex, site, report }, conflicts)
  // Endpoints that are not known here may end the others.
  return { lost, conflicts: conflicts.filter(({ isProvisional }) => isProvisional !== true) }
}

/** Returns the owners of all endpoints, by `nameKey`. */
function namesOf(holders: readonly Holder[]): ReadonlyMap<string, Uint8Array> {
  const all = holders.flatMap(({ content }) => content.endpoints)
  return new Map(all.map(({ owner }) => [nameKey(owner), owner]))
}

function hasName({ endpoints }: Holder['content'], id: string): boolean {
  return endpoints.some(({ owner }) => nameKey(owner) === id)
}

function contributionsOf({ key, place, site, content }: Holder, id: string): Contribution[] {
  const about = { key, place, site, down: UP, settings: content.settings }
  return content.endpoints
    .filter(({ owner }) => nameKey(owner) === id)
    .map((endpoint) => ({ ...about, endpoint }))
}

/** A nameserver ranks each part of a merged record like the record that it comes from. */
function holderOf({ record, content }: Publishing, site: string): Holder {
  const { key } = record
  return { key, place: key, createdSeconds: content.createdSeconds, site, id: undefined, content }
}

function foreignHolder({ key, packed, origin }: StoredRecord): Holder {
  const content = unpackRecord(packed)
  const { site = '', id } = origin ?? {}
  const place = printPlace(site, content)
  return { key, place, createdSeconds: content.createdSeconds, site, id, content }
}

/** The apex of a zone always has NS records. */
function defaultNs(owner: Uint8Array, site: string): Contribution {
  const common = { owner, type: RRType.NS, ttlSeconds: 0, rdata: [owner], setIdentifier: '' }
  const endpoint = { ...common, weight: undefined, codes: [], isDefault: false }
  return { key: DEFAULT_KEY, place: DEFAULT_KEY, site, endpoint, down: UP }
}

/** Names both records, both values and the fix; '' = the endpoint is served, or health decides. */
function printDrop(
  { key, endpoint }: Contribution,
  drop: Drop,
  all: readonly Contribution[],
): string {
  const at = `${printHost(endpoint.owner)} ${show(endpoint)} of ${key} is not served`
  if (drop.kind === 'cut') return `${at}: the name has too many endpoints; remove some of them`
  if (drop.kind !== 'cname' && drop.kind !== 'contradicted') return ''
  const isRival = (one: Contribution): boolean =>
    one.place === drop.by && one.endpoint !== endpoint && isInWay(endpoint, one.endpoint, drop.kind)
  const rival = all.find(isRival)
  if (rival === undefined || rival.key === DEFAULT_KEY)
    return `${at}: a CNAME cannot be beside the SOA of the zone; use A or AAAA`
  const where = `${rival.place}, which comes first, has ${show(rival.endpoint)}`
  return drop.kind === 'cname'
    ? `${at}: ${where}, and a CNAME must be alone; delete one of the two`
    : `${at}: ${where} with the same set identifier ${JSON.stringify(endpoint.setIdentifier)}; change one of the two`
}

function isInWay(endpoint: Endpoint, other: Endpoint, kind: 'cname' | 'contradicted'): boolean {
  return kind === 'cname'
    ? other.type !== endpoint.type
    : other.type === endpoint.type && other.setIdentifier === endpoint.setIdentifier
}

/** `A 192.0.2.1, 192.0.2.2`. */
function show({ type, rdata }: Endpoint): string {
  const shown = rdata.slice(0, VALUES_MAX).map((one) => printTarget(type, one))
  const more = rdata.length > VALUES_MAX ? ', …' : ''
  return `${printType(type)} ${shown.join(', ')}${more}`
}

function identify({ owner, type, setIdentifier }: Endpoint): string {
  return JSON.stringify([printHost(owner), printType(type), setIdentifier])
}

function identifyObject(endpoint: ApiObject): string {
  const [name, type] = [textOf(endpoint, 'dnsName'), textOf(endpoint, 'recordType')]
  return JSON.stringify([normalizeName(name), type, textOf(endpoint, 'setIdentifier')])
}
