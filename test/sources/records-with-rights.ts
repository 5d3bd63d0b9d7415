import { runWhole } from '../../src/base/slices.ts'
import { scanName } from '../../src/dns/name/name.ts'
import type { HostShare } from '../../src/records/host-share.ts'
import { packRecord, unpackRecord } from '../../src/records/pack.ts'
import { printHost, printTarget } from '../../src/records/print-endpoint.ts'
import { type RecordChange, StoredRecord } from '../../src/records/record-source.ts'
import { SERVED, validateResource } from '../../src/records/validate/resource.ts'
import { RecordRights, type RefusedNames } from '../../src/sources/record-rights.ts'
import { ZoneOwnership } from '../../src/sources/zone-ownership.ts'

/** A record of the zone k.example.com. Names are relative to it, `@` = its apex. */
export interface Given {
  readonly namespace: string
  readonly name?: string
  readonly host: string
  /** Missing = unknown. */
  readonly created?: number | undefined
  /** Names with an address; `NS name` = a delegation. Missing = the host. */
  readonly names?: readonly string[]
  readonly zone?: string
}

const zoned = (name: string): string =>
  name === '@' ? 'k.example.com' : /kdrnt$/.test(name) ? name : `${name}.k.example.com`

export function record({
  namespace,
  name = 'r',
  host,
  created,
  names = [host],
  zone,
}: Given): StoredRecord {
  const endpoints = names.map((text) => {
    const isTxt = text.startsWith('TXT ')
    const isNs = text.startsWith('NS ')
    const dnsName = zoned(text.replace(/^(NS|TXT) /, ''))
    if (isTxt) return { dnsName, recordType: 'TXT', targets: ['"x"'] }
    return isNs
      ? { dnsName, recordType: 'NS', targets: ['ns.evil.example'] }
      : { dnsName, recordType: 'A', targets: ['192.0.2.1'] }
  })
  const time = created === undefined ? undefined : new Date(created * 1000).toISOString()
  const got = validateResource(
    {
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: {
        ...{ namespace, name, ...(time === undefined ? {} : { creationTimestamp: time }) },
        labels: zone === undefined ? {} : { 'kuadrant.io/coredns-zone-name': zone },
      },
      spec: { rootHost: zoned(host), endpoints },
    },
    SERVED,
  )
  if (got.kind !== 'record') throw new Error(JSON.stringify(got))
  return new StoredRecord(`${namespace}/${name}`, packRecord(got.record))
}

/** A rights, and the records that a zone has after its changes. */
export class Stage {
  readonly #records = new Map<string, StoredRecord>()
  readonly #served = new Map<string, StoredRecord>()
  readonly #rights: RecordRights
  /** The index that is being read. */
  #work: Generator<void, void> | undefined
  /** Number of records that were read one by one, which is done to rights them again. */
  finds = 0

  /** `zones`: further ones, relative to k.example.com. */
  constructor(shares: readonly HostShare[] = [], zones: readonly string[] = []) {
    const ownership = new ZoneOwnership()
    const all = ['k.example.com', 'kdrnt', ...zones.map(zoned)]
    ownership.claim(all.map((zone) => scanName(`${zone}.`)!))
    this.#rights = new RecordRights({
      ownership,
      records: () => this.#records.values(),
      find: (key) => {
        this.finds++
        return this.#records.get(key)
      },
      isServed: () => true,
      shares,
    })
  }

  /** Records that are present at the start. */
  static load(records: Iterable<StoredRecord>, zones: readonly string[]): Stage {
    const stage = new Stage([], zones)
    for (const record of records) stage.#records.set(record.key, record)
    stage.#rights.load()
    const work = stage.#rights.build(() => {})
    if (work !== undefined) runWhole(work)
    for (const record of stage.#records.values()) {
      const served = stage.#rights.servedOf(record)
      if (served !== undefined) stage.#served.set(record.key, served)
    }
    return stage
  }

  /** Goes on with the index that is being read. `served` completes it. */
  readIndex(steps: number): this {
    for (let left = steps; left > 0 && this.#work?.next().done === false; left--);
    return this
  }

  /** Zones were added or removed. */
  decideAgain(): this {
    this.#rights.decideAgain()
    this.#work = this.#rights.build((late) => this.#serve(late)) ?? this.#work
    return this
  }

  put(...records: readonly StoredRecord[]): this {
    return this.#apply(records.map((after) => ({ before: this.#records.get(after.key), after })))
  }

  remove(key: string): this {
    return this.#apply([{ before: this.#records.get(key)!, after: undefined }])
  }

  #apply(changes: readonly RecordChange[]): this {
    for (const { before, after } of changes) {
      if (after === undefined) this.#records.delete(before!.key)
      else this.#records.set(after.key, after)
    }
    this.#serve(this.#rights.apply(changes))
    this.#work = this.#rights.build((late) => this.#serve(late)) ?? this.#work
    this.#compare()
    return this
  }

  #serve(changes: readonly RecordChange[]): void {
    for (const { before, after } of changes) {
      const { key } = (before ?? after)!
      if (this.#served.get(key) !== before) throw new Error(`${key}: another object was served`)
      if (after === undefined) this.#served.delete(key)
      else this.#served.set(key, after)
    }
  }

  #compare(): void {
    for (const record of this.#records.values()) {
      if (this.#rights.servedOf(record) !== this.#served.get(record.key))
        throw new Error(record.key)
    }
  }

  get refused(): readonly RefusedNames[] {
    if (this.#work !== undefined) runWhole(this.#work)
    return this.#rights.refused
  }

  /** `namespace/name: name TYPE, …` of each served record. */
  get served(): string[] {
    if (this.#work !== undefined) runWhole(this.#work)
    this.#compare()
    return [...this.#served.values()].map(print).sort()
  }
}

function print({ key, packed }: StoredRecord): string {
  const names = unpackRecord(packed).endpoints.map(({ owner, type, rdata }) => {
    const isNs = printTarget(type, rdata[0]!).includes('evil')
    return `${isNs ? 'NS ' : ''}${printHost(owner).replace(/\.?k\.example\.com$/, '') || '@'}`
  })
  return `${key}: ${names.join(' ')}`
}
