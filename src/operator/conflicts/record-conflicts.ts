import { printType, RRType } from '../../dns/iana/types.ts'
import { nameKey } from '../../dns/name/name.ts'
import type { Endpoint } from '../../dnsrecord/dns-record.ts'
import { printHost, printTarget } from '../../dnsrecord/print-endpoint.ts'
import { compareRecords, type RecordRank } from '../../dnsrecord/record-order.ts'
import type { ApiObject } from '../../kube/api.ts'
import { textOf } from '../../kube/api.ts'
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

/** What other records of this cluster keep a record from. */
export interface RecordConflicts {
  /** One line each; empty = there is no conflict. */
  readonly texts: readonly string[]
  /** No endpoint of the record is served. */
  readonly isWhole: boolean
  /** False for an endpoint, in the form of `spec.endpoints`, that is not served. */
  readonly isServed: (endpoint: ApiObject) => boolean
}

export const NO_CONFLICTS: RecordConflicts = { texts: [], isWhole: false, isServed: () => true }

/**
 * Finds what the nameservers do not serve of a record because other records of the zone have the
 * same names. The code that builds their RRsets decides. `site`: our own. `sharing`: the other records
 * of the zone with an endpoint of that name.
 */
export function findConflicts(
  publishing: Publishing,
  site: string,
  sharing: (name: string) => readonly Publishing[],
): RecordConflicts {
  const { record, content, zone } = publishing
  const lost = new Map<Endpoint, string>()
  const others: string[] = []
  const names = new Map(content.endpoints.map(({ owner }) => [nameKey(owner), owner]))
  for (const [id, owner] of names) {
    const name = printHost(owner)
    const isApex = name === zone
    const rivals = sharing(name)
    if (rivals.length === 0 && !isApex) continue
    const ordered = [publishing, ...rivals].sort((a, b) => {
      return compareRecords(rankOf(a, site), rankOf(b, site))
    })
    const named = ordered.flatMap((one) => contributionsOf(one, id, site))
    const needsNs = isApex && !named.some(({ endpoint }) => endpoint.type === RRType.NS)
    const all = needsNs ? [...named, defaultNs(owner, site)] : named
    const conflicts: Conflict[] = []
    const report = {
      dropped: (dropped: Contribution, drop: Drop) => {
        if (dropped.key !== record.key) return
        const text = printDrop(dropped, drop, all)
        if (text !== '') lost.set(dropped.endpoint, text)
      },
      kept: () => {},
    }
    buildOwnerSets(owner, all, { isApex, site, report }, conflicts)
    const isOther = ({ key, type }: Conflict): boolean =>
      key === record.key && ![...lost.keys()].some((one) => one.type === type)
    others.push(...conflicts.filter(isOther).map(({ text }) => text))
  }
  if (lost.size === 0 && others.length === 0) return NO_CONFLICTS
  const identities = new Set([...lost.keys()].map(identify))
  return {
    texts: [...new Set([...lost.values(), ...others])],
    isWhole: lost.size === content.endpoints.length,
    isServed: (endpoint) => !identities.has(identifyObject(endpoint)),
  }
}

function contributionsOf(
  { record, content }: Publishing,
  name: string,
  site: string,
): Contribution[] {
  const { key } = record
  const about = { key, place: key, site, down: UP, settings: content.settings }
  return content.endpoints
    .filter(({ owner }) => nameKey(owner) === name)
    .map((endpoint) => ({ ...about, endpoint }))
}

/** A nameserver ranks each part of a merged record like the record that it comes from. */
function rankOf({ record, content }: Publishing, site: string): RecordRank {
  return { key: record.key, createdSeconds: content.createdSeconds, site, id: undefined }
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
    one.key === drop.by && one.endpoint !== endpoint && isInWay(endpoint, one.endpoint, drop.kind)
  const rival = all.find(isRival)
  if (rival === undefined || rival.key === DEFAULT_KEY)
    return `${at}: a CNAME cannot be beside the SOA of the zone; use A or AAAA`
  const where = `${rival.key}, which comes first, has ${show(rival.endpoint)}`
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
