import type { Clock } from '../../../../src/base/clock.ts'
import { Random } from '../../../../src/base/random.ts'
import type { Timers } from '../../../../src/base/timers.ts'
import { Algorithm } from '../../../../src/dns/dnssec/algorithms.ts'
import {
  FLAGS_KSK,
  generatePrivateKey,
  type SigningKey,
  signingKey,
} from '../../../../src/dns/dnssec/dnskey.ts'
import { composeDs } from '../../../../src/dns/dnssec/ds.ts'
import { expirationOf } from '../../../../src/dns/dnssec/rrsig.ts'
import { RRType } from '../../../../src/dns/iana/types.ts'
import { nameKey, printName, scanName } from '../../../../src/dns/name/name.ts'
import { AnswerEvents } from '../../../../src/publish/build/answer-events.ts'
import { NO_PEERING, type PublishOptions } from '../../../../src/publish/options.ts'
import { OfferedVersions } from '../../../../src/publish/zone/offered-versions.ts'
import {
  type ContentSerial,
  SerialIndex,
} from '../../../../src/publish/zone/serials/serial-index.ts'
import { PublishedZones } from '../../../../src/publish/zone/zones.ts'
import type { RecordChange, StoredRecord } from '../../../../src/records/record-source.ts'
import {
  DEFAULT_SIGNING,
  type KeySource,
  type SigningPolicy,
  type ZoneKeys,
} from '../../../../src/signing/zone-keys.ts'
import { ZoneOwnership } from '../../../../src/sources/zone-ownership.ts'
import type { SteeringTable } from '../../../../src/steering/table.ts'
import { type VersionChange, ZoneVersions } from '../../../../src/xfr/zone-versions.ts'
import { ZoneImage } from '../../../../src/zone/image/writer.ts'
import { ZoneAnswerer } from '../../../../src/zone/lookup/answer.ts'
import { CLIENTS, createTable } from '../../../steering/stage.ts'
import { recordLog } from '../../../support/recorded-log.ts'
import { faultsOf } from '../../../support/response-validator.ts'
import { FakeClock, FakeTimers } from '../../../support/setup.ts'
import { TestHealth } from '../../../support/test-health.ts'
import { refill, transaction } from '../../../support/transaction.ts'
import { listRRsets, readRRset } from '../../../support/zone-contents.ts'
import { APEX, type Given, record } from '../../record-zone-stage.ts'

/** A new key of ECDSA P-256 that signs everything. */
export async function newCsk(): Promise<SigningKey> {
  const { EcdsaP256 } = Algorithm
  return signingKey(await generatePrivateKey(EcdsaP256), EcdsaP256, FLAGS_KSK)
}

/** `published`: keys that do not sign. */
export function keysOf(
  signing: readonly SigningKey[],
  published: readonly SigningKey[] = [],
): ZoneKeys {
  return {
    dnskeys: [...signing, ...published].map(({ dnskey }) => dnskey),
    dnskeyTtlSeconds: 3600,
    cds: signing.map(({ dnskey }) => composeDs(APEX, dnskey, 2)),
    cdnskeys: signing.map(({ dnskey }) => dnskey),
    keySigners: signing,
    zoneSigners: signing,
  }
}

/** Keys that the test changes. */
export class TestKeys implements KeySource {
  keys: ZoneKeys | undefined
  readonly #listeners = new Set<(zone: Uint8Array) => void>()

  constructor(keys: ZoneKeys | undefined) {
    this.keys = keys
  }

  find(): ZoneKeys | undefined {
    return this.keys
  }

  subscribe(listener: (zone: Uint8Array) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  notePublished(): void {}

  change(keys: ZoneKeys | undefined): void {
    this.keys = keys
    for (const listener of this.#listeners) listener(APEX)
  }
}

/** What outlasts a restart or a reload. */
export interface Process {
  readonly keys: TestKeys
  readonly image?: ZoneImage
  readonly table?: SteeringTable
  readonly earlier?: readonly ContentSerial[]
  readonly serials?: SerialIndex
  readonly policy?: Partial<SigningPolicy> | undefined
  readonly clock?: FakeClock
  readonly settings?: PublishOptions['settings']
  readonly health?: TestHealth
  /** The keys of SECOND; missing = the process does not have that zone. */
  readonly secondKeys?: TestKeys
}

/** A zone that a process has beside APEX. */
export const SECOND = scanName('second.example.')!

/** The zones `apexes`, signed. */
export function optionsOf(
  {
    keys,
    secondKeys,
    policy,
    settings,
  }: Pick<Process, 'keys' | 'secondKeys' | 'policy' | 'settings'>,
  apexes: readonly Uint8Array[] = [APEX],
): PublishOptions {
  const signedWith = (own: TestKeys) => {
    return { keys: own, policy: { ...DEFAULT_SIGNING, ...policy }, claim: () => {} }
  }
  const signed = new Map(apexes.map((apex) => [nameKey(apex), signedWith(keys)]))
  if (secondKeys !== undefined) signed.set(nameKey(SECOND), signedWith(secondKeys))
  return {
    zones: secondKeys === undefined ? apexes : [...apexes, SECOND],
    signed,
    source: { kind: 'manifests', directory: '' },
    position: { file: 'Corefile', line: 1 },
    snapshot: undefined,
    serials: '',
    rname: '',
    nameservers: [],
    allowedNamespaces: undefined,
    site: '',
    peering: NO_PEERING,
    settings,
  }
}

/** The zone `k.example.com.`, published and signed, with records that the test changes. */
export class SignedStage {
  readonly keys: TestKeys
  readonly image: ZoneImage
  readonly table: SteeringTable
  readonly serials: SerialIndex
  readonly clock: FakeClock
  readonly timers = new FakeTimers()
  readonly health: TestHealth
  readonly lines: string[]
  readonly versions: VersionChange[] = []
  readonly records = new Map<string, StoredRecord>()
  /** What `records` were made of. */
  readonly givens = new Map<string, Given>()
  readonly zones: PublishedZones
  readonly #answerer: ZoneAnswerer
  readonly #tx = transaction({ name: '.' })
  #notify: (changes: readonly RecordChange[]) => void = () => {}
  #stop = (): void => {}

  private constructor(parts: Process) {
    const { keys, serials = new SerialIndex(), clock = new FakeClock() } = parts
    const { image = new ZoneImage(), table = createTable().table, earlier } = parts
    this.keys = keys
    this.health = parts.health ?? new TestHealth()
    this.image = image
    this.table = table
    this.serials = serials
    this.clock = clock
    this.#answerer = new ZoneAnswerer(image.reader(), table.steerer(new Random(1)))
    const { log, lines } = recordLog()
    this.lines = lines
    const offered = new ZoneVersions()
    offered.subscribe((change) => this.versions.push(change))
    const options = optionsOf(parts)
    this.zones = new PublishedZones(options, {
      ...{ image, table, serials, earlier, log },
      health: this.health,
      versions: new OfferedVersions(image, offered, offered.source()),
      events: new AnswerEvents({ source: '', others: undefined, find: () => undefined }),
      serialFile: undefined,
      place: 'here',
      clock: clock satisfies Clock,
      timers: this.timers satisfies Timers,
      onCommit: () => {},
    })
  }

  /** Publishes these records for the first time. */
  static async open(parts: Process, givens: Iterable<Given> = []): Promise<SignedStage> {
    const stage = new SignedStage(parts)
    for (const given of givens) {
      const one = record(given)
      stage.records.set(one.key, one)
      stage.givens.set(one.key, given)
    }
    const ownership = new ZoneOwnership()
    ownership.claim([APEX, SECOND])
    stage.#stop = await stage.zones.follow(
      {
        records: () => stage.records.values(),
        find: (key) => stage.records.get(key),
        recordCount: 0,
        problems: () => [],
        unreadyReason: () => '',
        subscribe: (listener) => {
          stage.#notify = listener
          return () => {}
        },
      },
      ownership,
    )
    return stage
  }

  get serial(): number {
    return this.zones.zones[0]!.serial
  }

  get made(): number {
    return this.zones.zones[0]!.signatures!.report.made
  }

  put(given: Given): void {
    const after = record(given)
    const before = this.records.get(after.key)
    this.records.set(after.key, after)
    this.givens.set(after.key, given)
    this.#notify([{ before, after }])
  }

  remove(name: string): void {
    const before = this.records.get(`n/${name}`)
    this.records.delete(`n/${name}`)
    this.givens.delete(`n/${name}`)
    if (before !== undefined) this.#notify([{ before, after: undefined }])
  }

  setDown(name: string, addresses: readonly string[]): void {
    this.health.put(`n/${name}`, addresses)
    this.health.publish()
  }

  stop(): void {
    this.#stop()
  }

  /** Asks as a client that wants signatures; returns what a validator finds wrong, and fills `response`. */
  faultsOf(name: Uint8Array, type: number, from: string): string[] {
    const { query, response } = this.ask(name, type, from)
    const dnskeys = readRRset(this.image.reader(), APEX, RRType.DNSKEY)?.rdata ?? []
    const nowSeconds = Math.floor(this.clock.now() / 1000)
    const question = { name: query.qname.slice(0, name.length), type }
    return faultsOf(response, question, { apex: APEX, dnskeys, nowSeconds })
  }

  ask(name: Uint8Array, type: number, from: string = CLIENTS.nowhere) {
    const text = printName(name)
    const tx = refill(this.#tx, { name: text, type, from, dnssecOk: true, payloadOctets: 4096 })
    this.#answerer.answer(tx.query, tx.response)
    return tx
  }
}

/** Time until the first signature expires. */
export function leftSeconds({ image, clock }: SignedStage): number {
  const sets = [...listRRsets(image.reader(), image.findZone(APEX)!)]
  const signatures = sets.filter(({ type }) => type === RRType.RRSIG).flatMap(({ rdata }) => rdata)
  return Math.min(...signatures.map(expirationOf)) - clock.now() / 1000
}
