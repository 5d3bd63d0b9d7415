import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { printType, RRType } from '../../src/dns/iana/types.ts'
import { nameKey, scanName } from '../../src/dns/name/name.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import { AddressHealth } from '../../src/health/address-health.ts'
import { DrainFile } from '../../src/health/drain/drain-file.ts'
import { CLUSTER_ONLY, type DrainFeed } from '../../src/health/drain/drain-schedule.ts'
import { GroupDrains } from '../../src/health/drain/group-drains.ts'
import { GroupLookup } from '../../src/health/drain/group-lookup.ts'
import { HealthTable, type HealthView } from '../../src/health/health-table.ts'
import type { PeerObserver } from '../../src/health/observed-addresses.ts'
import { ProbePolicy } from '../../src/health/probes/probe-policy.ts'
import { Shifts } from '../../src/health/shift/shifts.ts'
import { type HostSlowStart, SlowStart } from '../../src/health/slow-start.ts'
import type { ApiObject } from '../../src/kube/api.ts'
import { keyOf as objectKey } from '../../src/kube/object-key.ts'
import { labelOf } from '../../src/operator/record/fields.ts'
import { DeathList } from '../../src/peering/deaths/death-list.ts'
import { ifSiteDies } from '../../src/peering/deaths/if-site-dies.ts'
import { LocalExporter } from '../../src/peering/local-exporter.ts'
import { MergedSource } from '../../src/peering/merged-source.ts'
import { metadataNames } from '../../src/peering/old-metadata.ts'
import { PeerFollower } from '../../src/peering/peer.ts'
import type { Generation, SiteState } from '../../src/peering/peer-endpoint.ts'
import { HealthQuorum } from '../../src/peering/quorum/health-quorum.ts'
import { QuorumMemory } from '../../src/peering/quorum/quorum-memory.ts'
import { readOldAnswers } from '../../src/peering/read-v1.ts'
import { readV2Host } from '../../src/peering/read-v2.ts'
import type { OwnerSet } from '../../src/publish/build/owner-set.ts'
import { RecordZone } from '../../src/publish/build/record-zone.ts'
import { sitesOfEndpoints } from '../../src/publish/sites-of-endpoints.ts'
import type { Endpoint } from '../../src/records/dns-record.ts'
import { printHost } from '../../src/records/print-endpoint.ts'
import type { RecordSource, StoredRecord } from '../../src/records/record-source.ts'
import { ClusterDrains } from '../../src/sources/kubernetes/cluster-drains.ts'
import { ClusterStore } from '../../src/sources/kubernetes/cluster-store.ts'
import { NamespaceDrains } from '../../src/sources/kubernetes/namespace-drains.ts'
import { type AllDownPolicy, OPEN } from '../../src/steering/rules.ts'
import { sortIntoTiers } from '../../src/steering/tiers.ts'
import { recordLog } from '../support/recorded-log.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'
import { ProbePlaces } from './probe-places.ts'

export const HOST = 'app.k.example.com'
const ZONE_LABEL = 'kuadrant.io/coredns-zone-name'
const CLOCK = new FakeClock()

/** What a nameserver reads, and with which properties. */
export interface Given {
  readonly site: string
  /** True: it serves the objects that the operator derived. */
  readonly isInCluster: boolean
  readonly objects: readonly ApiObject[]
  /** Addresses that a probe found down and up, by key of the record. */
  readonly down?: ReadonlyMap<string, readonly string[]>
  readonly up?: ReadonlyMap<string, readonly string[]>
  /** Lines of a ConfigMap of drains. */
  readonly drains?: readonly string[]
  /** Lines of a drain file. */
  readonly drainFile?: readonly string[]
  /** The Namespace `a`; the server has `namespace-drains`. */
  readonly namespace?: ApiObject | undefined
  /** The property `all-down` of the block of the zone; missing = `open`. */
  readonly allDown?: AllDownPolicy
  /** Addresses that have just recovered; the server has `slow-start`. */
  readonly slowStarts?: readonly string[]
  /** Group of the server. Another one is active. */
  readonly group?: string | undefined
  /** What a peer reports of the host; undefined = the server has no peers. */
  readonly peer?: readonly SiteState[]
}

/** What another site accepts, and why it does not accept the rest. */
export interface Exported {
  readonly state: SiteState
  readonly problems: readonly string[]
}

/** What a nameserver serves of a host, and all that it says about it. */
export interface Nameserver {
  /** One line for each RRset of the host. */
  readonly served: readonly string[]
  /** Where a server without a cluster probes each address, if records have health checks. */
  readonly probed: readonly string[]
  readonly messages: readonly string[]
  /** What another site reads of the host in its zone kdrnt. */
  readonly exported: (generation: Generation) => Exported
}

/** Builds the zones of a nameserver from all that it reads: with the code of the server, without its sockets. */
export async function serve(given: Given): Promise<Nameserver> {
  const { site, peer, allDown = OPEN } = given
  const { lines, log } = recordLog()
  const own = new OwnRecords(given)
  const health = own.health
  const exporter = new LocalExporter(site, CLOCK)
  const parts = { clock: CLOCK, timers: new FakeTimers(), log }
  const probed = new ProbePlaces()
  if (!given.isInCluster) probed.addOwn(own)
  const observer = probed.observe(own)
  const merged = peer && merge(own, site, peer, { exporter, observer, ...parts })
  await merged?.ready()
  const feeds = feedsOf(given, parts)
  const file = drainFileOf(given, parts)
  const table = new HealthTable({
    ...{ source: merged ?? own, found: merged?.found ?? [health], file, feeds, site },
    sitesOf: (record) => sitesOfEndpoints(record, record.origin?.site ?? site),
    ...parts,
  })
  file?.close()
  await table.drains.ready
  const shifts = new Shifts({ source: merged ?? own, table, ...parts })
  const slowStart = new SlowStart({
    ...{ source: merged ?? own, table, durationMs: 60_000, known: knownOf(given) },
    ...parts,
  })
  await slowStart.ready
  const zone = new Zone('k.example.com.', table.with({ shifts, slowStart }), {
    site,
    lines,
    allDown,
  })
  zone.fill([...(merged ?? own).records()].filter((one) => own.isInZone(one, 'k.example.com')))
  const kdrnt = new Zone('kdrnt.', table, { site, lines, allDown: OPEN, exporter })
  kdrnt.fill([...own.records()].filter((one) => own.isInZone(one, 'kdrnt')))
  const deaths = merged === undefined ? [] : printDeaths(merged, site)
  merged?.close()
  return {
    served: zone.print(),
    probed: probed.print(),
    messages: [...own.messages, ...[...lines, ...deaths].map((line) => `log: ${line}`)],
    exported: (generation) => (generation === 'v2' ? kdrnt.readV2() : kdrnt.readV1()),
  }
}

function knownOf({ slowStarts = [] }: Given): HostSlowStart[] {
  const sinceMs = new Map(slowStarts.map((address) => [address, CLOCK.monotonic()]))
  return [{ key: '', hostKey: nameKey(scanName(`${HOST}.`)!), sinceMs }]
}

/** The records of files or of a cluster. */
class OwnRecords implements RecordSource {
  readonly health = new AddressHealth()
  readonly messages: string[] = []
  readonly #store = new ClusterStore(this.health)
  readonly #isInCluster: boolean
  readonly #zones = new Map<string, string>()

  constructor({ objects, isInCluster, down = new Map(), up = new Map() }: Given) {
    this.#isInCluster = isInCluster
    for (const object of objects) {
      const zone = labelOf(object, ZONE_LABEL)
      // Of a cluster, a nameserver reads the objects with this label.
      if (isInCluster && zone === '') continue
      const refusal = this.#store.put('dnsrecords', object)
      if (refusal !== undefined) this.messages.push(`log: ${refusal.message}`)
      this.#zones.set(objectKey(object), zone)
    }
    this.#store.settle()
    for (const [health, found] of [
      ['down', down],
      ['up', up],
    ] as const) {
      for (const [recordKey, addresses] of found) {
        for (const address of addresses) this.health.add({ recordKey, address, health })
      }
    }
  }

  get recordCount(): number {
    return this.#store.recordCount
  }

  /** True for a record of a file, or if the object from which the record was made names the zone. */
  isInZone({ key }: StoredRecord, zone: string): boolean {
    return !this.#isInCluster || this.#zones.get(key.replace(/[@~].*/, '')) === zone
  }

  records(): Iterable<StoredRecord> {
    return this.#store.records()
  }

  find(key: string): StoredRecord | undefined {
    return this.#store.find(key)
  }

  problems(): [] {
    return []
  }

  unreadyReason(): string {
    return ''
  }

  subscribe(): () => void {
    return () => {}
  }
}

type Parts = Pick<ConstructorParameters<typeof MergedSource>[0], 'clock' | 'timers' | 'log'>

/** A peer with these endpoints. */
class ToyPeer extends PeerFollower {
  readonly #states: readonly SiteState[]

  constructor(states: readonly SiteState[], parts: Parts) {
    super({ peer: { host: '127.0.0.1', port: 53 }, ...parts, random: () => 0 })
    this.#states = states
  }

  override get lastSeenMs(): number {
    return CLOCK.monotonic()
  }
  override get lastAnswerMs(): number {
    return CLOCK.monotonic()
  }
  override hosts(): ReadonlySet<string> {
    return new Set([HOST])
  }
  override siteStatesOf(): readonly SiteState[] {
    return this.#states
  }
}

/** What a server logs about the death of sites. */
function printDeaths(merged: MergedSource, site: string): string[] {
  const sites = { site, sites: 2, knowsOthers: true }
  const waits = { silentMs: 24 * 3_600_000, quorum: 0, holdDownMs: 0 }
  const rest = { unprobed: '', policy: new ProbePolicy([]), commands: new Set<string>() }
  const rules = { ...sites, ...waits, ...rest, allDown: OPEN }
  const list = new DeathList()
  for (const host of merged.hostsOfSites()) {
    for (const death of ifSiteDies(host, rules)) list.add(death)
  }
  return list.lines().map((line) => `if ${line.site} dies: ${line.text}`)
}

/** The drains of a file, as `drain FILE` reads it. */
function drainFileOf({ drainFile = [], isInCluster }: Given, parts: Parts): DrainFile | undefined {
  if (drainFile.length === 0) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'sextant-drains-'))
  const path = join(folder, 'drains')
  writeFileSync(path, drainFile.join('\n'))
  const file = new DrainFile({ path, note: isInCluster ? CLUSTER_ONLY : undefined, ...parts })
  rmSync(folder, { recursive: true })
  return file
}

interface MergeParts extends Parts {
  readonly exporter: LocalExporter
  readonly observer: PeerObserver
}

function merge(
  own: OwnRecords,
  site: string,
  states: readonly SiteState[],
  { exporter, observer, ...parts }: MergeParts,
): MergedSource {
  const peers = [new ToyPeer(states, parts)]
  const quorum = new HealthQuorum({
    ...{
      site,
      peers,
      quorum: 0,
      holdDownMs: 0,
      memory: new QuorumMemory(CLOCK),
      observer,
    },
    ...parts,
  })
  return new MergedSource({
    ...{ own, health: own.health, allows: () => true, site, exporter, peers, quorum },
    ...{ expiryMs: 60_000, ...parts },
  })
}

/** The drains of a ConfigMap, of a Namespace and of a group. */
function feedsOf({ site, drains = [], namespace, group }: Given, parts: Parts): DrainFeed[] {
  const place = { namespace: 'sextant-system', name: 'drains' }
  const cluster = new ClusterDrains({ place, ...parts })
  cluster.put({ metadata: place, data: { drains: drains.join('\n') } })
  for (const { reason } of cluster.problems) throw new Error(reason)
  const namespaces = new NamespaceDrains({ namespaces: [], ...parts })
  if (namespace !== undefined) {
    namespaces.put(namespace)
    namespaces.settle()
  }
  if (group === undefined) return [cluster, namespaces]
  const lookup = new GroupLookup({ zone: scanName('k.example.com.')!, servers: () => [], ...parts })
  lookup.recall(['another'])
  const lookups = [{ item: lookup, release: () => {} }]
  return [cluster, namespaces, new GroupDrains({ group, site, lookups, ...parts })]
}

const NS: Endpoint = {
  ...{ owner: scanName('.')!, type: RRType.NS, ttlSeconds: 60, setIdentifier: '' },
  ...{ weight: undefined, codes: [], isDefault: false, rdata: [scanName('ns1.k.example.com.')!] },
}

interface ZoneParts {
  readonly site: string
  readonly lines: string[]
  readonly allDown: AllDownPolicy
  /** Of the zone kdrnt. */
  readonly exporter?: LocalExporter
}

/** A zone and its RRsets. */
class Zone {
  readonly #sets = new Map<string, OwnerSet>()
  readonly #records: RecordZone
  #isFilled = false

  constructor(apexText: string, health: HealthView, parts: ZoneParts) {
    const { site, lines, allDown, exporter } = parts
    const apex = scanName(apexText)!
    const keyOf = (owner: Uint8Array, type: number) => `${printHost(owner)} ${printType(type)}`
    this.#records = new RecordZone({
      ...{ apex, health, site, fixed: [], isLocalForm: exporter !== undefined },
      defaultNs: { ...NS, owner: apex },
      settings: { allDown, sticky: undefined },
      sink: {
        put: (owner, set) => void this.#sets.set(keyOf(owner, set.type), set),
        remove: (owner, type) => void this.#sets.delete(keyOf(owner, type)),
        declare: () => {},
      },
      onConflict: (text) => lines.push(text),
      isComplete: () => this.#isFilled,
      onOut: () => {},
      ...(exporter && { exportV2: (...args) => exporter.composeRdata(...args) }),
    })
  }

  fill(records: readonly StoredRecord[]): void {
    this.#records.apply(records.map((after) => ({ before: undefined, after })))
    this.#isFilled = true
    this.#records.conflicts.recheck()
  }

  /** One line for each RRset except the NS of the apex; `app` stands for the host. */
  print(): string[] {
    const sets = [...this.#sets].filter(([, { type }]) => type !== RRType.NS)
    return sets.map(([key, set]) => `${key.replace(HOST, 'app')} ${printSet(set)}`).sort()
  }

  readV2(): Exported {
    const rdata = this.#rdata(`v2.${HOST}.kdrnt TXT`)
    const place = { host: HOST, seenMs: CLOCK.monotonic(), exporter: PEER }
    const { siteStates, problems } = readV2Host(rdata, place)
    return { state: siteStates[0] ?? { ...NOTHING, generation: 'v2' }, problems }
  }

  readV1(): Exported {
    const records = [...this.#sets.values()].flatMap(({ endpoints, ttlSeconds, type }) => {
      return endpoints.flatMap(({ endpoint: { owner, rdata } }) => {
        return rdata.map((one) => ({ owner, type, ttlSeconds, rdata: one }))
      })
    })
    const metadata = (prefix: 'w' | 'g') => {
      return metadataNames(prefix, HOST).flatMap((name) => this.#rdata(`${name} TXT`))
    }
    const answers = { records, weights: metadata('w'), geos: metadata('g') }
    const place = { peer: PEER, rootHost: HOST, seenMs: CLOCK.monotonic() }
    const { siteState: state, problems } = readOldAnswers(answers, place)
    return { state, problems }
  }

  #rdata(key: string): readonly Uint8Array[] {
    return this.#sets.get(key)?.rdata ?? []
  }
}

const PEER = '192.0.2.53:53'
const NOTHING = {
  ...{ site: 'there', exporter: PEER, isOwn: true, rootHost: HOST, endpoints: [] },
  seenMs: CLOCK.monotonic(),
}

/** Everything that decides the answers, for each class of clients. */
function printSet(set: OwnerSet): string {
  const { type, ttlSeconds, rdata, candidates, sticky, answers, pointSets } = set
  if (candidates.length === 0) return 'nothing'
  const { keys, tiers } = sortIntoTiers(candidates, type, set)
  const classes = tiers.map((tier, i) => {
    const outcomes = tier.map(({ weight, rdataIndexes }) => {
      const targets = rdataIndexes.map((index) => printRdata(type, rdata[index]!)).sort()
      return tier.length === 1 ? targets.join('+') : `${targets.join('+')} (${weight})`
    })
    return `${keys[i]?.text ?? '*'}: ${outcomes.sort().join(' ')}`
  })
  const points = pointSets?.flatMap((one) => one.map(({ text }) => text)).sort()
  return [
    `ttl=${ttlSeconds}`,
    ...(sticky === undefined ? [] : [`sticky=${sticky.ipv4Bits}/${sticky.ipv6Bits}`]),
    ...(answers === undefined ? [] : [`answers=${answers}`]),
    ...(points === undefined ? [] : [`points=${points.join('|')}`]),
    ...classes,
  ].join(' ')
}
