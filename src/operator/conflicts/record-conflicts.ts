import { RRType } from '../../dns/iana/types.ts'
import { nameKey } from '../../dns/name/name.ts'
import { type ApiObject, textOf } from '../../kube/api.ts'
import { groupBy } from '../../peering/merge/part.ts'
import { buildOwnerSets } from '../../publish/build/build-owner-sets.ts'
import { printPlace } from '../../publish/build/decoded-record.ts'
import { difference } from '../../publish/build/equal-endpoints.ts'
import { type Contribution, DEFAULT_KEY, type Drop } from '../../publish/build/owner-set.ts'
import type { Conflict } from '../../publish/build/record-conflicts.ts'
import { ALIAS_TYPE, type Endpoint } from '../../records/dns-record.ts'
import { idleLines } from '../../records/failover-names.ts'
import { unpackRecord, unpackSettings } from '../../records/pack.ts'
import { printHost, printRecordType, printTarget } from '../../records/print-endpoint.ts'
import { type RecordRank, sortRecords } from '../../records/record-order.ts'
import { recordId, type StoredRecord } from '../../records/record-source.ts'
import type { RecordSettings } from '../../records/settings.ts'
import { expandRecord } from '../../sources/kubernetes/expand-record.ts'
import type { Publishing } from '../plan/decide.ts'
import { normalizeName } from '../record/spec-endpoint.ts'

/** Values of an endpoint that a message shows. */
const VALUES_MAX = 3
const UP: ReadonlySet<number> = new Set()

/** Endpoints of a record that are not served because of other records, and why. */
export interface RecordConflicts {
  /** One line for each conflict with a record of this cluster. */
  readonly texts: readonly string[]
  /** Conflicts with records of other sites, one line each, as a nameserver logs them. */
  readonly ofSites: readonly string[]
  /** Conflicts that endpoints of nameservers that were never heard may end, one line each. */
  readonly provisional: readonly string[]
  /** No endpoint of the record is served. */
  readonly isWhole: boolean
  /** False for an endpoint, in the form of `spec.endpoints`, that is not served. */
  readonly isServed: (endpoint: ApiObject) => boolean
}

export const NO_CONFLICTS: RecordConflicts = {
  texts: [],
  ofSites: [],
  provisional: [],
  isWhole: false,
  isServed: () => true,
}

/** A record as nameservers rank it: a whole one, or what one record contributes to an authoritative record. */
interface Member extends RecordRank {
  /** Names it in messages. */
  readonly place: string
  readonly endpoints: readonly Endpoint[]
  /** By `nameKey` of the owner. */
  readonly byName: ReadonlyMap<string, readonly Endpoint[]>
  readonly settings: RecordSettings | undefined
  /** As in RecordOrigin. */
  readonly isPartial?: boolean | undefined
  /** As the function `idleLines` returns them. */
  readonly idle: ReturnType<typeof idleLines>
}

/** Where to find the other records. */
export interface ConflictScope {
  /** Our own site. */
  readonly site: string
  /** True = the clock of our API server is wrong. */
  readonly isUndated?: boolean | undefined
  /** The other records of the zone with an endpoint of that name. */
  readonly sharing: (name: string) => readonly Publishing[]
  /**
   * A delegating record whose conflicts are wanted: that part of the authoritative record. `site`: of its cluster.
   * Missing = those of the whole record.
   */
  readonly part?: { readonly key: string; readonly site: string } | undefined
  /** Records of other sites; missing = none are known. */
  readonly foreign?: readonly StoredRecord[] | undefined
}

/**
 * Finds what the nameservers do not serve of a record, and what else is in dispute, because other records of the zone
 * have the same names. The code that builds their RRsets decides.
 */
export function findConflicts(
  publishing: Publishing,
  { site, isUndated, sharing, part, foreign = [] }: ConflictScope,
): RecordConflicts {
  const here = { site, isUndated }
  const isPart = ({ id, site: of }: RecordRank): boolean =>
    part === undefined || (id === recordId(part.key) && of === part.site)
  const members = membersOf(publishing, here)
  const own = members.filter(isPart)
  const subjects = new Set(own.map(({ key }) => key))
  const theirs = foreign.map(foreignMember)
  const endpoints = own.flatMap((one) => one.endpoints)
  const lost = new Map<Endpoint, string>()
  const lostToSites = new Set<Endpoint>()
  const [texts, ofSites] = [new Set<string>(), new Set<string>()]
  const provisional = new Set<string>()
  const namesOthers = own.some(({ settings }) => settings?.failover !== undefined)
  const expanded = new Map<Publishing, readonly Member[]>()
  for (const [id, owner] of namesOf([...own, ...theirs])) {
    const isApex = printHost(owner) === publishing.zone
    const rivals = sharing(printHost(owner)).flatMap((one) => {
      const known = expanded.get(one) ?? membersOf(one, here)
      expanded.set(one, known)
      return known
    })
    const about = { id, owner, isApex, site, subjects }
    const isAlone = rivals.length === 0 && members.length === own.length && !isApex && !namesOthers
    const local = isAlone ? NO_CONTEST : contend([...members, ...rivals], about)
    for (const [endpoint, text] of local.lost) lost.set(endpoint, text)
    const isOther = ({ key, type }: Conflict): boolean =>
      subjects.has(key) && ![...local.lost.keys()].some((one) => one.type === type)
    for (const { text } of local.conflicts.filter(isOther)) texts.add(text)
    if (!theirs.some((one) => one.byName.has(id))) {
      for (const { text } of local.provisional) provisional.add(text)
      continue
    }
    const all = contend([...members, ...rivals, ...theirs], about)
    for (const { text } of all.provisional) provisional.add(text)
    for (const endpoint of all.lost.keys()) lostToSites.add(endpoint)
    for (const { text } of all.conflicts) ofSites.add(text)
    for (const { text } of local.conflicts) ofSites.delete(text)
  }
  const missing = new Set([...lost.keys(), ...lostToSites])
  if (missing.size + texts.size + ofSites.size + provisional.size === 0) return NO_CONFLICTS
  // Another part may have the same endpoint.
  const kept = new Set(endpoints.filter((one) => !missing.has(one)).map(identify))
  const identities = new Set([...missing].map(identify).filter((one) => !kept.has(one)))
  return {
    texts: [...new Set([...lost.values(), ...texts])],
    ofSites: [...ofSites],
    provisional: [...provisional],
    isWhole: missing.size === endpoints.length,
    isServed: (endpoint) => !identities.has(identifyObject(endpoint)),
  }
}

interface Contest {
  /** `nameKey` of the owner. */
  readonly id: string
  readonly owner: Uint8Array
  readonly isApex: boolean
  readonly site: string
  /** Keys of the members whose losses count. */
  readonly subjects: ReadonlySet<string>
}

interface ContestOutcome {
  /** What is not served, and why. */
  readonly lost: ReadonlyMap<Endpoint, string>
  readonly conflicts: readonly Conflict[]
  /** Those that endpoints which are not known here may end, of the subjects. */
  readonly provisional: readonly Conflict[]
}

const NO_CONTEST: ContestOutcome = { lost: new Map(), conflicts: [], provisional: [] }

/** Builds the RRsets of one name. */
function contend(
  members: readonly Member[],
  { id, owner, isApex, site, subjects }: Contest,
): ContestOutcome {
  const ours = sortRecords(members).flatMap((one) => contributionsOf(one, id))
  // A CNAME at an apex acts as an ALIAS, as in a server.
  const originals = new Map<Endpoint, Endpoint>()
  const named = ours.map((one): Contribution => {
    if (!isApex || one.endpoint.type !== RRType.CNAME) return one
    const endpoint = { ...one.endpoint, type: ALIAS_TYPE }
    originals.set(endpoint, one.endpoint)
    return { ...one, endpoint }
  })
  const needsNs = isApex && !named.some(({ endpoint }) => endpoint.type === RRType.NS)
  const all = needsNs ? [...named, defaultNs(owner, site)] : named
  const lost = new Map<Endpoint, string>()
  const conflicts: Conflict[] = []
  const report = {
    dropped: (dropped: Contribution, drop: Drop) => {
      if (!subjects.has(dropped.key)) return
      const text = printDrop(dropped, drop, all)
      const { endpoint } = dropped
      if (text !== '') lost.set(originals.get(endpoint) ?? endpoint, text)
    },
    kept: () => {},
  }
  buildOwnerSets(owner, all, { isApex, site, report }, conflicts)
  const isProvisional = (one: Conflict): boolean => one.isProvisional === true
  return {
    lost,
    conflicts: conflicts.filter((one) => !isProvisional(one)),
    provisional: conflicts.filter((one) => isProvisional(one) && subjects.has(one.key)),
  }
}

/** Returns the owners of all endpoints, by `nameKey`. */
function namesOf(members: readonly Member[]): ReadonlyMap<string, Uint8Array> {
  const all = members.flatMap(({ byName }) => [...byName])
  return new Map(all.map(([id, [first]]) => [id, first!.owner]))
}

function foreignMember({ key, packed, origin }: StoredRecord): Member {
  const content = unpackRecord(packed)
  const { createdSeconds, endpoints, settings } = content
  const { site = '', id, isUndated } = origin ?? {}
  const place = printPlace(site, content)
  return { key, place, createdSeconds, site, id, isUndated, ...contentOf(endpoints, settings) }
}

function contributionsOf(member: Member, name: string): Contribution[] {
  const { key, place, site, settings, isPartial, idle, byName } = member
  const about = { key, place, site, down: UP, settings, isPartial, idleLines: idle }
  return (byName.get(name) ?? []).map((endpoint) => ({ ...about, endpoint }))
}

function contentOf(
  endpoints: readonly Endpoint[],
  settings: RecordSettings | undefined,
): Pick<Member, 'endpoints' | 'byName' | 'settings' | 'idle'> {
  const byName = groupBy(endpoints, ({ owner }) => nameKey(owner))
  return { endpoints, byName, settings, idle: idleLines({ endpoints, settings }) }
}

/** A nameserver ranks each part of an authoritative record like the record that it comes from. */
function membersOf(
  { record, content }: Publishing,
  here: Pick<ConflictScope, 'site' | 'isUndated'>,
): readonly Member[] {
  const { key } = record
  const { createdSeconds, endpoints, settings } = content
  if (record.role !== 'authoritative') {
    const rank = { key, createdSeconds, ...here, id: undefined }
    return [{ ...rank, place: key, ...contentOf(endpoints, settings) }]
  }
  return expandRecord(record.object, content).records.map((one) => {
    const { createdSeconds, endpoints } = unpackRecord(one.packed)
    const { site: of = here.site, id, isUndated, isPartial } = one.origin ?? {}
    const place = of === here.site ? (one.original ?? key) : printPlace(of, content)
    const rank = { key: one.key, createdSeconds, site: of, id, isUndated }
    return { ...rank, place, isPartial, ...contentOf(endpoints, unpackSettings(one.packed)) }
  })
}

/** The apex of a zone always has NS records. */
function defaultNs(owner: Uint8Array, site: string): Contribution {
  const common = { owner, type: RRType.NS, ttlSeconds: 0, rdata: [owner], setIdentifier: '' }
  const endpoint = { ...common, weight: undefined, codes: [], isDefault: false }
  return { key: DEFAULT_KEY, place: DEFAULT_KEY, site, endpoint, down: UP }
}

/** Names both records, both values and the fix; '' = the endpoint is served, or health decides. */
function printDrop(
  { place, endpoint }: Contribution,
  drop: Drop,
  all: readonly Contribution[],
): string {
  const at = `${printHost(endpoint.owner)} ${show(endpoint)} of ${place} is not served`
  if (drop.kind === 'cut') return `${at}: the name has too many endpoints; remove some of them`
  if (drop.kind !== 'cname' && drop.kind !== 'contradicted') return ''
  const isRival = (one: Contribution): boolean =>
    one.place === drop.by && one.endpoint !== endpoint && isInWay(endpoint, one.endpoint, drop.kind)
  const rivals = all.filter(isRival)
  const rival = rivals.find((one) => one.endpoint.type === endpoint.type) ?? rivals[0]
  if (rival === undefined || rival.key === DEFAULT_KEY)
    return `${at}: a CNAME cannot be beside the SOA of the zone; use A or AAAA`
  const holder =
    rival.place === place ? 'the same record' : `${rival.place}, which takes precedence,`
  const where = `${at}: ${holder} has`
  if (drop.kind === 'cname')
    return `${where} ${show(rival.endpoint)}, and a CNAME must be alone; delete one of the two`
  const [what, theirs, ours] = difference(rival.endpoint, endpoint)
  const value = what === 'targets' ? show(rival.endpoint) : `${what} ${theirs}, not ${ours},`
  return `${where} ${value} with the same set identifier ${JSON.stringify(endpoint.setIdentifier)}; change one of the two`
}

function isInWay(endpoint: Endpoint, other: Endpoint, kind: 'cname' | 'contradicted'): boolean {
  return kind === 'cname'
    ? other.type !== endpoint.type
    : other.setIdentifier === endpoint.setIdentifier
}

/** `A 192.0.2.1, 192.0.2.2`. */
function show({ type, rdata }: Endpoint): string {
  const shown = rdata.slice(0, VALUES_MAX).map((one) => printTarget(type, one))
  const more = rdata.length > VALUES_MAX ? ', …' : ''
  return `${printRecordType(type)} ${shown.join(', ')}${more}`
}

function identify({ owner, type, setIdentifier }: Endpoint): string {
  return JSON.stringify([printHost(owner), printRecordType(type), setIdentifier])
}

function identifyObject(endpoint: ApiObject): string {
  const [name, type] = [textOf(endpoint, 'dnsName'), textOf(endpoint, 'recordType')]
  return JSON.stringify([normalizeName(name), type, textOf(endpoint, 'setIdentifier')])
}
