import { RRType } from '../../dns/iana/types.ts'
import { nameKey, scanName } from '../../dns/name/name.ts'
import { UNKNOWN_HEALTH } from '../../health/address-health.ts'
import { type EndpointDrain, isActive, NO_DRAINS } from '../../health/drain/drain.ts'
import { drainAll, drainBySetting } from '../../health/drain/record-drain.ts'
import { UNKNOWN_ROW } from '../../health/health-table.ts'
import { listTargets, type PeerEndpoint, printTargets } from '../../peering/peer-endpoint.ts'
import type { SiteRecord } from '../../peering/site-records.ts'
import { toCanonical, toPeerEndpoint } from '../../peering/to-peer-endpoint.ts'
import type { Member, OwnerSet } from '../../publish/build/owner-set.ts'
import { RecordZone } from '../../publish/build/record-zone.ts'
import {
  type Endpoint,
  SET_IDENTIFIER_CHARACTERS_MAX,
  TARGETS_MAX,
} from '../../records/dns-record.ts'
import { packRecord, type RecordContent, unpackRecord } from '../../records/pack.ts'
import { type RecordOrigin, recordId, StoredRecord } from '../../records/record-source.ts'
import type { Publishing } from './decide.ts'

const ROOT = scanName('.')!
/** A zone needs an NS. No record has the name of the root, so this NS is in conflict with none. */
const ROOT_NS: Endpoint = {
  ...{ owner: ROOT, type: RRType.NS, ttlSeconds: 0, setIdentifier: '', weight: undefined },
  ...{ codes: [], isDefault: false, rdata: [ROOT] },
}

/** The records of other sites for a host, and the addresses of all sites that are out of service. */
interface HostState {
  readonly site: string
  /** True = the clock of our API server is wrong. */
  readonly isUndated?: boolean | undefined
  readonly foreign: readonly SiteRecord[]
  /** Addresses of our own record that are down. */
  readonly down: readonly string[]
  /** Addresses of records of other sites that are down. */
  readonly foreignDown: ReadonlySet<string>
  /** The drain of our own record; undefined = it is not drained. */
  readonly drain: EndpointDrain | undefined
  readonly timeMs: number
}

/** Our own record. */
export interface Served extends Pick<Publishing, 'content' | 'rootHost'> {
  readonly record: Pick<Publishing['record'], 'key'>
}

/** A record without settings, its endpoints, and its targets that are out of service. */
interface HostRecord {
  readonly record: StoredRecord
  readonly endpoints: readonly Endpoint[]
  readonly down: readonly string[]
  readonly drain: EndpointDrain | undefined
}

/**
 * Returns the endpoints of a host that are in service, of all sites, for programs that read neither health nor
 * settings. The code that builds the RRsets of a nameserver decides. A target that is out of service is left out,
 * unless none of its name and type would be left. Then all of them are listed, with the health `down`.
 */
export function composeServed(
  { record, content, rootHost }: Served,
  host: HostState,
): PeerEndpoint[] {
  const { site, isUndated, down, drain } = host
  const own = recordOf(record.key, content, { site, id: recordId(record.key), isUndated })
  const ours = { record: own, endpoints: content.endpoints, down, drain }
  const records = [ours, ...host.foreign.map((one) => foreignOf(one, host))]
  const facts = { site, rootHost }
  const endpoints = buildSets(records, site).flatMap((set) => listEndpoints(set, facts))
  // A sort compares each endpoint several times.
  const ordered = endpoints.map((one) => ({ one, order: orderOf(one) })).sort(compare)
  return ordered.map(({ one }) => one)
}

function recordOf(key: string, content: RecordContent, origin: RecordOrigin): StoredRecord {
  const packed = packRecord({ ...content, namespace: '', name: '', settings: undefined })
  return new StoredRecord(key, packed, origin)
}

function foreignOf({ record, endpoints }: SiteRecord, host: HostState): HostRecord {
  const { key, packed, origin } = record
  const { settings } = endpoints[0]!
  const drain = settings?.drain && drainBySetting(key, settings.drain, '')
  const isAllUp = host.foreignDown.size === 0
  return {
    record: settings === undefined ? record : recordOf(key, unpackRecord(packed), origin!),
    endpoints: endpoints.map(({ endpoint }) => endpoint),
    down: isAllUp ? [] : listTargets(endpoints).filter((one) => host.foreignDown.has(one)),
    drain: drain !== undefined && isActive(drain, host.timeMs) ? drain : undefined,
  }
}

function buildSets(records: readonly HostRecord[], site: string): OwnerSet[] {
  const byKey = new Map(records.map((one) => [one.record.key, one]))
  const sets = new Map<string, OwnerSet>()
  const keyOf = (owner: Uint8Array, type: number): string => `${nameKey(owner)} ${type}`
  const zone = new RecordZone({
    ...{ apex: ROOT, isLocalForm: false, site, fixed: [], defaultNs: ROOT_NS },
    sink: {
      put: (owner, set) => void sets.set(keyOf(owner, set.type), set),
      remove: (owner, type) => void sets.delete(keyOf(owner, type)),
      declare: () => {},
    },
    health: {
      rowOf: (record) => {
        const { endpoints, down, drain } = byKey.get(record.key)!
        const drains = drain === undefined ? NO_DRAINS : drainAll(endpoints, drain)
        return { ...UNKNOWN_ROW, record, health: { ...UNKNOWN_HEALTH, down }, drains }
      },
    },
    onConflict: () => {},
    onOut: () => {},
  })
  zone.apply(records.map(({ record }) => ({ before: undefined, after: record })))
  return [...sets.values()]
}

type Facts = Pick<PeerEndpoint, 'site' | 'rootHost'>

/** Lists each set identifier once, ours unchanged. Endpoints without any distinguishing value become one. */
function listEndpoints({ type, rdata, ttlSeconds, endpoints, allDown }: OwnerSet, facts: Facts) {
  const health = allDown === undefined ? 'unknown' : 'down'
  const print = ({ endpoint, candidates }: Member, setIdentifier: string): PeerEndpoint => {
    const indexes = new Set(candidates.flatMap(({ rdataIndexes }) => rdataIndexes))
    const targets = [...indexes].map((index) => rdata[index]!)
    const served = { ...endpoint, setIdentifier, ttlSeconds, rdata: targets }
    return toPeerEndpoint(served, { ...facts, health, sinceSeconds: 0 })
  }
  const members = endpoints.filter((one) => one.candidates.length > 0 && one.endpoint !== ROOT_NS)
  const isUnited = ({ endpoint }: Member): boolean => type !== RRType.CNAME && isPlain(endpoint)
  const taken = new Set<string>()
  const isTheirs = ({ site = facts.site }: Member): boolean => site !== facts.site
  const named = members.filter((one) => !isUnited(one))
  const ordered = [...named.filter((one) => !isTheirs(one)), ...named.filter(isTheirs)]
  const distinct = ordered.map((one) => {
    const id = isTheirs(one) ? distinguish(one, taken) : one.endpoint.setIdentifier
    taken.add(id)
    return print(one, id)
  })
  const plain = members.filter(isUnited).map((one) => print(one, ''))
  const all = plain.flatMap(({ endpoint }) => endpoint.rdata)
  const targets = all.length === 0 ? [] : toCanonical({ ...plain[0]!.endpoint, rdata: all }).rdata
  const chunks = Math.ceil(targets.length / TARGETS_MAX)
  const united = Array.from({ length: chunks }, (_, i): PeerEndpoint => {
    const part = targets.slice(i * TARGETS_MAX, (i + 1) * TARGETS_MAX)
    return { ...plain[0]!, endpoint: { ...plain[0]!.endpoint, rdata: part } }
  })
  return [...united, ...distinct]
}

/** An identifier for an endpoint of a site, if another site has an endpoint with its set identifier, too. */
function distinguish({ endpoint, site }: Member, taken: ReadonlySet<string>): string {
  const { setIdentifier } = endpoint
  const own = setIdentifier === '' ? site! : `-${site}`
  for (let count = 1; ; count++) {
    const suffix = count === 1 ? own : `${own}-${count}`
    const id = setIdentifier.slice(0, SET_IDENTIFIER_CHARACTERS_MAX - suffix.length) + suffix
    if (!taken.has(id)) return id
  }
}

/** True for an endpoint that has nothing to distinguish it from others of its name and type. */
function isPlain({ setIdentifier, weight, codes, isDefault, point }: Endpoint): boolean {
  const isBare = setIdentifier === '' && weight === undefined && point === undefined
  return isBare && codes.length === 0 && !isDefault
}

function compare(a: { readonly order: string }, b: { readonly order: string }): number {
  if (a.order === b.order) return 0
  return a.order < b.order ? -1 : 1
}

function orderOf({ endpoint }: PeerEndpoint): string {
  const { setIdentifier, weight = -1, codes, isDefault, point } = endpoint
  const { dnsName, recordType, targets } = printTargets(endpoint)
  const steering = [weight, codes.map(({ text }) => text), isDefault, point?.text ?? '']
  return JSON.stringify([dnsName, recordType, setIdentifier, targets, steering])
}
