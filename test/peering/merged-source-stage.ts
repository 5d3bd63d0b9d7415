import type { Test } from 'tap'
import { LocalExporter } from '../../src/peering/local-exporter.ts'
import { MergedSource } from '../../src/peering/merged-source.ts'
import { PeerFollower } from '../../src/peering/peer.ts'
import type { Generation, PeerEndpoint, SiteState } from '../../src/peering/peer-endpoint.ts'
import { HealthQuorum } from '../../src/peering/quorum/health-quorum.ts'
import { QuorumMemory } from '../../src/peering/quorum/quorum-memory.ts'
import type { DnsRecord } from '../../src/records/dns-record.ts'
import { packRecord, unpackRecord } from '../../src/records/pack.ts'
import {
  type RecordChange,
  type RecordSource,
  StoredRecord,
} from '../../src/records/record-source.ts'
import type { RecordSettings } from '../../src/records/settings.ts'
import { scanHost } from '../../src/records/validate/names.ts'
import { tableOf } from '../health/stage.ts'
import { endpoint } from '../support/peer-text.ts'
import { recordLog } from '../support/recorded-log.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'
import { TestHealth } from '../support/test-health.ts'

export const APP = 'app.k.example.com'
/** Key of the record that the peer has of it. */
export const THEIRS = `peers/${APP}@east`
export const EXPIRY_MS = 60_000

/** Our own records, as a test puts them. */
class OwnRecords implements RecordSource {
  readonly health = new TestHealth()
  readonly #records = new Map<string, StoredRecord>()
  #listener: (changes: readonly RecordChange[]) => void = () => {}
  readonly recordCount = 0

  records(): Iterable<StoredRecord> {
    return this.#records.values()
  }
  find(key: string): StoredRecord | undefined {
    return this.#records.get(key)
  }
  problems() {
    return []
  }
  unreadyReason(): string {
    return ''
  }
  subscribe(listener: (changes: readonly RecordChange[]) => void): () => void {
    this.#listener = listener
    return () => {}
  }

  /** `name`: of its endpoint. */
  put(key: string, host: string, address: string, down: readonly string[] = [], name = host): void {
    const before = this.#records.get(key)
    const after = new StoredRecord(key, packRecord(recordOf(host, address, name)))
    this.health.put(key, down)
    if (before?.packed !== after.packed) {
      this.#records.set(key, after)
      this.#listener([{ before, after }])
    }
    this.health.publish()
  }

  /** Puts records at once: key, host, address and name of each. */
  load(records: readonly (readonly [string, string, string, string])[]): void {
    const changes = records.map(([key, host, address, name]) => {
      const after = new StoredRecord(key, packRecord(recordOf(host, address, name)))
      this.#records.set(key, after)
      return { before: undefined, after }
    })
    this.#listener(changes)
  }

  /** Replaces the settings of a record. */
  set(key: string, settings: RecordSettings): void {
    const before = this.#records.get(key)!
    const record = { namespace: 'a', name: 'a', ...unpackRecord(before.packed), settings }
    const after = new StoredRecord(key, packRecord(record))
    this.#records.set(key, after)
    this.#listener([{ before, after }])
  }

  remove(key: string): void {
    const before = this.#records.get(key)
    this.#records.delete(key)
    this.#listener([{ before, after: undefined }])
  }
}

function recordOf(host: string, address: string, name: string): DnsRecord {
  const rdata = [Uint8Array.from(address.split('.').map(Number))]
  const plain = {
    ttlSeconds: 60,
    setIdentifier: '',
    weight: undefined,
    codes: [],
    isDefault: false,
  }
  return {
    namespace: 'a',
    name: 'a',
    zoneLabel: '',
    rootHost: scanHost(host)!,
    isWildcardHost: false,
    isAggregate: false,
    createdSeconds: 0,
    endpoints: [{ owner: scanHost(name)!, type: 1, ...plain, rdata }],
  }
}

/** A peer that says what the test has it say. */
class FakePeer extends PeerFollower {
  readonly endpointsOf = new Map<string, readonly PeerEndpoint[]>()
  readonly wanted = new Set<string>()
  seenMs = Number.NEGATIVE_INFINITY
  /** By host, where that was before. */
  readonly confirmedMs = new Map<string, number>()
  lost = 0
  readonly #wants = new Map<string, number>()
  #notify: (hosts: ReadonlySet<string>) => void = () => {}

  override get status() {
    return { ...super.status, lastSeenMs: this.seenMs }
  }
  override get lastSeenMs(): number {
    return this.seenMs
  }
  override get lastAnswerMs(): number {
    return this.seenMs
  }
  override want(host: string): void {
    this.wanted.add(host)
    this.#wants.set(host, (this.#wants.get(host) ?? 0) + 1)
  }
  /** As where each want is counted. */
  override forget(host: string): void {
    if (this.#wants.get(host) === 1) this.wanted.delete(host)
    this.#wants.set(host, (this.#wants.get(host) ?? 0) - 1)
    if (!this.wanted.has(host)) this.lost++
  }
  generation_: Generation = 'v2'
  override hosts(): ReadonlySet<string> {
    return new Set(this.endpointsOf.keys())
  }
  override subscribe(listener: (hosts: ReadonlySet<string>) => void): () => void {
    this.#notify = listener
    return () => {}
  }
  override siteStatesOf(host: string): readonly SiteState[] {
    const endpoints = this.endpointsOf.get(host) ?? []
    const { site } = endpoints[0] ?? endpoint()
    const seenMs = this.confirmedMs.get(host) ?? this.seenMs
    const about = { site, exporter: site, isOwn: true, rootHost: host, seenMs } as const
    return [{ ...about, endpoints, generation: this.generation_ }]
  }

  again(...hosts: string[]): void {
    this.#notify(new Set(hosts))
  }
  say(host: string, ...targets: string[]): void {
    const reported = { rootHost: host, dnsName: host, targets }
    this.endpointsOf.set(host, targets.length === 0 ? [] : [endpoint(reported)])
    this.#notify(new Set([host]))
  }
}

/** A source that merges own records with those of one peer. */
export async function setUp(t: Test) {
  const clock = new FakeClock()
  const timers = new FakeTimers()
  const { lines, log } = recordLog()
  const own = new OwnRecords()
  const common = { clock, timers, log }
  const address = { host: '127.0.0.1', port: 53 }
  const peer = new FakePeer({ peer: address, ...common, random: () => 0 })
  peer.seenMs = clock.monotonicMs
  own.put('a/own', APP, '192.0.2.1')
  own.put('b/hidden', APP, '192.0.2.66')
  const quorum = new HealthQuorum({
    ...{ site: 'west', peers: [peer], quorum: 0, holdDownMs: 0, clock, log },
    memory: new QuorumMemory(clock),
    observer: undefined,
  })
  const source = new MergedSource({
    own,
    health: own.health,
    allows: ({ key }) => !key.startsWith('b/'),
    site: 'west',
    exporter: new LocalExporter('west', clock),
    peers: [peer],
    expiryMs: EXPIRY_MS,
    quorum,
    ...common,
  })
  t.teardown(() => source.close())
  await source.ready()
  const table = tableOf(source, { ...common, found: source.found })
  const changes: RecordChange[] = []
  source.subscribe((batch) => changes.push(...batch))
  /** `key address,address`, in order; `-` before an address that is down. */
  const serves = (): string[] => {
    const printOne = (one: StoredRecord): string => {
      return printRecord(one, table.rowOf(one).health.down)
    }
    return [...source.records()].map(printOne).sort()
  }
  const pass = async (milliseconds: number): Promise<void> => {
    clock.pass(milliseconds)
    await timers.advance(milliseconds)
  }
  return { source, table, own, peer, changes, serves, pass, clock, timers, log, lines }
}

function printRecord({ key, packed }: StoredRecord, down: readonly string[]): string {
  const { endpoints } = unpackRecord(packed)
  const targets = endpoints.flatMap((e) => e.rdata.map((r) => r.join('.')))
  return `${key} ${targets.map((one) => (down.includes(one) ? `-${one}` : one)).join()}`
}
